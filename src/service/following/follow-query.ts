import { invalidField } from '../../domain/errors.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { checkEventType, checkTime, checkUuid } from '../../domain/values/fields.ts';
import { isoTime } from '../../domain/values/time.ts';
import type { FollowLedgerEventsRequest } from '../../gen/svc/v1/ledgers_pb.ts';
import { checkIfGiven } from '../calls/given-fields.ts';
import { checkVerify } from '../reading/event-query.ts';

export interface FollowQuery {
  /** The seq or master seq behind which the stream begins; -1: at the first event. null: only new events. */
  readonly after: number | null;
  readonly eventType: string | null;
  readonly eventId: string | null;
  /** ISO times, inclusive. */
  readonly from: string | null;
  readonly to: string | null;
  readonly verifySignatures: boolean;
}

type FilterFields = Partial<Pick<FollowLedgerEventsRequest, 'eventType' | 'eventId' | 'from' | 'to' | 'verify'>>;

/** `afterField`: the name of the field with `after`. Throws `invalid_argument` with the field's name. */
export function checkFollowQuery(fields: FilterFields, after: bigint | undefined, afterField: string): FollowQuery {
  return {
    after: after === undefined ? null : checkAfter(afterField, after),
    eventType: checkIfGiven(checkEventType, 'event_type', fields.eventType) ?? null,
    eventId: checkIfGiven(checkUuid, 'event_id', fields.eventId) ?? null,
    from: fields.from === undefined ? null : isoTime(checkTime('from', fields.from)),
    to: fields.to === undefined ? null : isoTime(checkTime('to', fields.to)),
    verifySignatures: checkVerify(fields.verify),
  };
}

function checkAfter(field: string, after: bigint): number {
  if (after >= -1n && after <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(after);
  throw invalidField(field, 'an integer from -1');
}

export function matchesQuery(event: LedgerEvent, query: FollowQuery): boolean {
  if (query.eventType !== null && event.eventType !== query.eventType) return false;
  if (query.eventId !== null && event.id !== query.eventId) return false;
  return query.from === null || event.createdAt >= query.from;
}
