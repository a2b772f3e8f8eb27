import { invalidField } from '../../domain/errors.ts';
import { checkEventType, checkOffset, checkTime, checkUuid, listOffsetMax } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { ListLedgerEventsRequest } from '../../gen/svc/v1/ledgers_pb.ts';
import { checkOrder } from '../calls/list-page.ts';

/** Events of a page: the default and the maximum. */
const eventsPageMax = 1_000;

/** The checked query of an event list. */
export interface EventQuery {
  readonly limit: number;
  readonly offset: number;
  readonly descending: boolean;
  readonly eventType: string | null;
  readonly eventId: string | null;
  /** Ledger seq, inclusive. null if it was left out. */
  readonly fromSeq: number | null;
  /** ISO times, inclusive. */
  readonly from: string | null;
  readonly to: string | null;
  readonly verifySignatures: boolean;
  /** The seq of a cursor, at which reading starts. `offset` is then what the cursor's page had left to skip. */
  readonly startSeq: number | null;
}

/** Whether each event has to be examined. Times and seqs do not filter: they only bound the list. */
export function isFiltered(query: EventQuery): boolean {
  return query.eventType !== null || query.eventId !== null;
}

/** The fields that the requests of all event lists have. */
export type EventQueryFields = Partial<
  Pick<
    ListLedgerEventsRequest,
    'limit' | 'cursor' | 'order' | 'offset' | 'eventType' | 'eventId' | 'fromSeq' | 'from' | 'to' | 'verify'
  >
>;

/** Throws `invalid_argument` with the field's name. */
export function checkEventQuery(fields: EventQueryFields): EventQuery {
  const descending = checkOrder(fields.order);
  const start = fields.cursor === undefined ? null : readCursor(fields.cursor, descending);
  return {
    limit: fields.limit === undefined ? eventsPageMax : checkEventLimit(fields.limit),
    offset: start === null ? checkOffset('offset', fields.offset) : start.skip,
    descending,
    eventType: fields.eventType === undefined ? null : checkEventType('event_type', fields.eventType),
    eventId: fields.eventId === undefined ? null : checkUuid('event_id', fields.eventId),
    fromSeq: fields.fromSeq === undefined ? null : checkSeq(fields.fromSeq),
    from: fields.from === undefined ? null : isoTime(checkTime('from', fields.from)),
    to: fields.to === undefined ? null : isoTime(checkTime('to', fields.to)),
    verifySignatures: checkVerify(fields.verify),
    startSeq: start === null ? null : start.seq,
  };
}

function checkEventLimit(limit: number): number {
  if (limit >= 1 && limit <= eventsPageMax) return limit;
  throw invalidField('limit', `an integer from 1 to ${eventsPageMax}`);
}

function checkSeq(seq: bigint): number {
  if (seq >= 0n && seq <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(seq);
  throw invalidField('from_seq', 'an integer from 0');
}

function checkVerify(verify: string | undefined): boolean {
  if (verify === undefined || verify === 'signatures') return verify === 'signatures';
  throw invalidField('verify', '"signatures"');
}

/** Where a page begins. */
export interface EventStart {
  readonly seq: number;
  /** Matching events to skip from there on: what is left of an offset. */
  readonly skip: number;
}

/** Base64url of the 2 to 24 characters that makeCursor writes. */
export const cursorForm = /^[A-Za-z0-9_-]{3,32}$/;

/** Makes a cursor, which is opaque to clients: the direction, the seq and what is left to skip. */
export function makeCursor({ seq, skip }: EventStart, descending: boolean): string {
  const text = `${descending ? 'd' : 'a'}${seq}${skip === 0 ? '' : `+${skip}`}`;
  return Buffer.from(text).toString('base64url');
}

function readCursor(cursor: string, descending: boolean): EventStart {
  const text = cursorForm.test(cursor) ? Buffer.from(cursor, 'base64url').toString('latin1') : '';
  const [, direction, digits, skipped = '0'] = /^([ad])(0|[1-9]\d{0,15})(?:\+([1-9]\d{0,5}))?$/.exec(text) ?? [];
  const start = { seq: Number(digits), skip: Number(skipped) };
  if (direction === undefined || makeCursor(start, direction === 'd') !== cursor || start.skip > listOffsetMax) {
    throw invalidField('cursor', 'the next_cursor of a page of this list');
  }
  if ((direction === 'd') !== descending) throw invalidField('cursor', 'used with the order that it was given for');
  return start;
}
