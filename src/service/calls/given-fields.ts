import { refusedValue } from '../../domain/errors.ts';

export function checkIfGiven<T>(
  check: (field: string, value: unknown) => T,
  field: string,
  value: unknown,
): T | undefined {
  return value === undefined ? undefined : check(field, value);
}

export function checkOneOf(field: string, value: string | undefined, allowed: readonly string[]): string | undefined {
  if (value === undefined || allowed.includes(value)) return value;
  throw refusedValue(field, value, `one of ${allowed.join(', ')}`);
}

/** Values of the filter `status`. */
export const statuses = ['OPEN', 'CLOSED'];
