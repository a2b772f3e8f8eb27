import { uuidV7Time } from '../domain/values/uuid.ts';
import { isUuid } from '../domain/values/uuid-form.ts';

/** More than any HTTP status. */
const statusMax = 9_999;

/** The retention time: how long events are kept, ms. */
export const accessKeptMs = 90 * 24 * 60 * 60 * 1000;

/** One authenticated call, as the access history of the caller's actor keeps it. */
export interface AccessEvent {
  /** UUIDv7 of the time of the answer. The history is sorted by it. */
  readonly id: string;
  /** The actor that called, whose history has this event. */
  readonly actorId: string;
  readonly apiKeyId: string | null;
  /**
   * The ledger that the call named. null if it named none, or a master or organization that does not exist, is in no
   * ledger, or in one that the caller may not know.
   */
  readonly ledgerId: string | null;
  /** REST method and path without the query, also for calls by other transports. */
  readonly method: string;
  readonly path: string;
  readonly responseStatus: number;
  readonly requestId: string;
}

/** Which part of an actor's history is read. */
export interface AccessPage {
  /** Only calls that named this ledger. null: all calls. */
  readonly ledgerId: string | null;
  /** Milliseconds since 1970. Earlier events are left out, even if they are still stored. */
  readonly since: number;
  readonly limit: number;
  readonly offset: number;
  /** Newest first. */
  readonly descending: boolean;
}

/** Who reads a page of an access history. */
export interface AccessReading {
  readonly signal: AbortSignal;
  /** Called with how many events and blocks of events were looked at, shown or not. */
  examined(count: number): void;
}

/**
 * The calls of each actor, kept for a limited time. Events are written in bulk after the answers and seldom read. So
 * the cost of an append depends on its own events only, not on the stored ones, and expiry drops whole windows of time.
 *
 * A history is in the order of the ids. A writer appends its events in that order, so that a store with a single writer
 * need not sort. Such a store also keeps an event whose id is lower than that of an event appended before, but may show
 * this event among the later ones.
 */
export interface AccessLog {
  /**
   * Resolves when the events are durable and every later `list` finds them. Throws LedgerError `unavailable` if all,
   * some or none may have been written: append the same events again as a whole, and each is stored once. Throws
   * RangeError if the events are not in the order of their ids, or an id is not a UUIDv7.
   */
  append(events: readonly AccessEvent[]): Promise<void>;
  /** Returns a page of the actor's history. Stops reading and throws the signal's reason once it is aborted. */
  list(actorId: string, page: AccessPage, reading?: AccessReading): Promise<AccessEvent[]>;
  /**
   * Removes events from before `before` (milliseconds since 1970), never later ones. Some of them may stay for up to 15
   * days, a sixth of the 90 that they are kept. Returns how many windows of time were dropped (their length is the
   * store's choice), 0 if none.
   */
  sweep(before: number): Promise<number>;
}

/** Whether a stored event has the types that its fields have. */
export function isAccessEvent(event: AccessEvent): boolean {
  const { id, apiKeyId, ledgerId, method, path, responseStatus, requestId } = event as Record<
    keyof AccessEvent,
    unknown
  >;
  const isText = (value: unknown) => typeof value === 'string' && value.isWellFormed();
  return (
    typeof id === 'string' &&
    isUuid(id) &&
    uuidV7Time(id) !== null &&
    [method, path, requestId].every(isText) &&
    [apiKeyId, ledgerId].every((value) => value === null || isText(value)) &&
    typeof responseStatus === 'number' &&
    Number.isInteger(responseStatus) &&
    responseStatus >= 0 &&
    responseStatus <= statusMax
  );
}

/**
 * Returns when the call of an access event was answered, ms since 1970. Throws RangeError unless the id is a UUIDv7.
 */
export function accessTime(id: string): number {
  const time = uuidV7Time(id);
  if (time === null) throw new RangeError(`No id of an access event: ${id}`);
  return time;
}
