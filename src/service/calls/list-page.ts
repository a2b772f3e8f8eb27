import { invalidField, LedgerError, refusedValue } from '../../domain/errors.ts';
import { checkLimit, checkOffset } from '../../domain/values/fields.ts';
import { readCursor } from './list-cursor.ts';

interface ListRequest {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
  readonly order?: string | undefined;
}

/** The page of every list but those of events, which have their own (event-query.ts). */
export function checkListPage(request: ListRequest) {
  return {
    limit: checkLimit('limit', request.limit),
    offset: checkOffset('offset', request.offset),
    descending: checkOrder(request.order),
  };
}

/** A page of a list that is read by cursor or by offset. */
export interface CursorPage extends ReturnType<typeof checkListPage> {
  readonly byCursor: boolean;
  /** The place of the entry that the page begins after. null: at the end that reading starts from. */
  readonly after: string | null;
}

/** Stands in a cursor for the end that reading starts from. */
export const listStart = '';

/** `place` is the form of the places of this list. A cursor of another list is `invalid_argument`. */
export function checkCursorPage(
  request: ListRequest & { readonly cursor?: string | undefined },
  place: RegExp,
): CursorPage {
  const page = checkListPage(request);
  if (request.cursor === undefined) return { ...page, byCursor: false, after: null };
  if (page.offset > 0) throw invalidField('offset', 'left out beside cursor');
  const after = readCursor(request.cursor, page.descending, (text) => text === listStart || place.test(text));
  return { ...page, byCursor: true, after: after === listStart ? null : after };
}

/** Returns true for 'desc', and false for 'asc' or no order. Throws `invalid_argument` for other values. */
export function checkOrder(order: string | undefined): boolean {
  if (order === undefined || order === 'asc') return false;
  if (order === 'desc') return true;
  throw refusedValue('order', order, '"asc" or "desc"');
}

/**
 * The error for a page for which too many items would have to be examined: to a caller that pages by offset a shorter
 * page would read as the end. `nextCursor` goes on at the first entry of the refused page. undefined: not known yet.
 */
export function tooFarInto(what: string, examinedMax: number, nextCursor?: string): LedgerError {
  const byCursor = nextCursor === undefined ? '' : ', or go on with the cursor in details.next_cursor';
  return new LedgerError(
    'invalid_argument',
    `More than ${examinedMax} ${what} would have to be looked through for this page: ask for fewer, nearer to the beginning, or with order from the other end${byCursor}.`,
    { field: 'offset', limit: examinedMax, ...(nextCursor === undefined ? {} : { next_cursor: nextCursor }) },
  );
}
