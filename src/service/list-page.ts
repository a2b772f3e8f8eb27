import { invalidField, LedgerError } from '../domain/errors.ts';

/** Query `order`: true for 'desc', false for 'asc' or none. */
export function checkOrder(order: string | undefined): boolean {
  if (order === undefined || order === 'asc') return false;
  if (order === 'desc') return true;
  throw invalidField('order', '"asc" or "desc"');
}

/** For a filtered list of which more than `examinedMax` would have to be looked through: a page cut short would read as its end. */
export function tooFarInto(what: string, examinedMax: number): LedgerError {
  return new LedgerError(
    'invalid_argument',
    `More than ${examinedMax} ${what} would have to be looked through for this page: ask for fewer, nearer to the beginning, or with order from the other end.`,
    { field: 'offset', limit: examinedMax },
  );
}
