import type { StoredRecord } from '../../store/record-store.ts';
import { decodeStored } from '../../store/unreadable-record.ts';

type Check = (value: unknown) => boolean;

/**
 * The check of each field of a stored value. Other fields are from a later version: they are not checked,
 * and are kept when the value is written again.
 */
export type FormOf<T> = { readonly [Field in keyof T]-?: Check };

export const text: Check = (value) => typeof value === 'string';
/** A time that Date can parse. */
export const time: Check = (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value));
export const webAddress: Check = (value) => typeof value === 'string' && URL.canParse(value);
export const count: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
export const flag: Check = (value) => typeof value === 'boolean';
export const anyObject: Check = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
export const list: Check = (value) => Array.isArray(value);
export const orNull = (check: Check): Check =>
  Object.defineProperty((value: unknown) => value === null || check(value), 'name', { value: `${check.name} or null` });
export const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
export const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
export const oneOf =
  (...words: readonly string[]): Check =>
  (value) =>
    words.some((word) => word === value);
export const objectOf =
  <T>(form: FormOf<T>): Check =>
  (value) => {
    if (!anyObject(value)) return false;
    const members = value as Readonly<Record<string, unknown>>;
    return Object.entries<Check>(form).every(([field, check]) => check(members[field]));
  };

export const textOrNull = orNull(text);
export const worldOrNull = orNull(oneOf('sandbox', 'production'));

/** How the values of one kind of record are checked. */
export interface RecordForm<T> {
  readonly kind: string;
  readonly form: FormOf<T>;
  /** The id of the record that a value belongs to, if the value has it. */
  id?(value: T): string;
}

/**
 * Makes a check of objects that looks at the members in `form` alone. It throws a TypeError that says which member is
 * wrong, and by the name of its check what it should be.
 */
export function memberCheck<T>(form: Partial<FormOf<T>>): (value: unknown) => void {
  const checks: [string, Check][] = Object.entries(form);
  return (value) => {
    if (!anyObject(value)) throw new TypeError('This is no object.');
    for (const [name, check] of checks)
      if (!check((value as Readonly<Record<string, unknown>>)[name]))
        throw new TypeError(`Member ${name} is no ${check.name}.`);
  };
}

/** Makes a parser of JSON text with this check. It also throws SyntaxError. */
export function parserOf<T>(form: Partial<FormOf<T>>): (json: string) => T {
  const check = memberCheck(form);
  return (json) => {
    const value: unknown = JSON.parse(json);
    check(value);
    return value as T;
  };
}

type Stored = Pick<StoredRecord, 'kind' | 'id' | 'value'>;

/** Parses a stored record. Throws if the value is no JSON, lacks this form, or belongs to another record. */
export function decodeForm<T>({ id, value }: Stored, rules: RecordForm<T>): T {
  const parsed: unknown = JSON.parse(value);
  if (!objectOf(rules.form)(parsed)) throw new TypeError('it lacks a field, or has one of another type');
  if (rules.id !== undefined && rules.id(parsed as T) !== id) throw new TypeError('it is another record');
  return parsed as T;
}

/** The same, but throws UnreadableRecord. */
export function decodeRecord<T>(record: Stored, rules: RecordForm<T>): T {
  return decodeStored(record, () => decodeForm(record, rules));
}
