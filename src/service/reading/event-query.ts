import { invalidField, refusedValue } from '../../domain/errors.ts';
import {
  checkCount,
  checkEventType,
  checkOffset,
  checkTime,
  checkUuid,
  listOffsetMax,
} from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { ListLedgerEventsRequest } from '../../gen/svc/v1/ledgers_pb.ts';
import { makeCursor, readCursor, unknownCursor } from '../calls/list-cursor.ts';
import { checkOrder } from '../calls/list-page.ts';

/** Events of a page: the default and the maximum. */
const eventsPageMax = 1_000;

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

/**
 * Whether events within the bounds are left out: then offsets count matches, gaps are no `missing_event`, and a page
 * may end before it is full. Each filter stands here and in `matches`. Times and seqs only bound the list.
 */
export function isFiltered(query: EventQuery): boolean {
  return query.eventType !== null || query.eventId !== null;
}

/**
 * The fields of ListLedgerEvents, ListMasterEvents and GetDelegationProof. A field that one of them lacks is undefined
 * there.
 */
export type EventQueryFields = Partial<
  Pick<
    ListLedgerEventsRequest,
    'limit' | 'cursor' | 'order' | 'offset' | 'eventType' | 'eventId' | 'fromSeq' | 'from' | 'to' | 'verify'
  >
>;

/** Throws `invalid_argument` with the field's name. */
export function checkEventQuery(fields: EventQueryFields): EventQuery {
  const descending = checkOrder(fields.order);
  const start = fields.cursor === undefined ? null : readEventCursor(fields.cursor, descending);
  return {
    limit: fields.limit === undefined ? eventsPageMax : checkEventLimit(fields.limit),
    offset: start === null ? checkOffset('offset', fields.offset) : start.skip,
    descending,
    eventType: fields.eventType === undefined ? null : checkEventType('event_type', fields.eventType),
    eventId: fields.eventId === undefined ? null : checkUuid('event_id', fields.eventId),
    fromSeq: fields.fromSeq === undefined ? null : checkCount('from_seq', fields.fromSeq, 0),
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

export function checkVerify(verify: string | undefined): boolean {
  if (verify === undefined || verify === 'signatures') return verify === 'signatures';
  throw refusedValue('verify', verify, '"signatures"');
}

export interface EventStart {
  readonly seq: number;
  /** Matching events to skip from there on: what is left of an offset. */
  readonly skip: number;
}

export function makeEventCursor({ seq, skip }: EventStart, descending: boolean): string {
  return makeCursor(`${seq}${skip === 0 ? '' : `+${skip}`}`, descending);
}

const EVENT_PLACE = /^(0|[1-9]\d{0,15})(?:\+([1-9]\d{0,5}))?$/;

const isEventPlace = (text: string): boolean => EVENT_PLACE.test(text);

function readEventCursor(cursor: string, descending: boolean): EventStart {
  const [, seq, skip = '0'] = EVENT_PLACE.exec(readCursor(cursor, descending, isEventPlace)) ?? [];
  if (Number(skip) > listOffsetMax) throw unknownCursor(cursor);
  return { seq: Number(seq), skip: Number(skip) };
}
