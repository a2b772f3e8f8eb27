import { LedgerError, refusedValue } from '../../domain/errors.ts';
import { checkLimit, checkOffset } from '../../domain/values/fields.ts';

interface ListRequest {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly order?: string | undefined;
}

export function checkListPage(request: ListRequest) {
  return {
    limit: checkLimit('limit', request.limit),
    offset: checkOffset('offset', request.offset),
    descending: checkOrder(request.order),
  };
}

/** Returns true for 'desc', and false for 'asc' or no order. Throws `invalid_argument` for other values. */
export function checkOrder(order: string | undefined): boolean {
  if (order === undefined || order === 'asc') return false;
  if (order === 'desc') return true;
  throw refusedValue('order', order, '"asc" or "desc"');
}

/** The error for a page for which too many items would have to be examined. A shorter page would read as the end. */
export function tooFarInto(what: string, examinedMax: number): LedgerError {
  return new LedgerError(
    'invalid_argument',
    `More than ${examinedMax} ${what} would have to be looked through for this page: ask for fewer, nearer to the beginning, or with order from the other end.`,
    { field: 'offset', limit: examinedMax },
  );
}
