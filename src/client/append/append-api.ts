import type { AppendEventRequest, AppendEventResponse } from '../../gen/svc/v1/masters_pb.ts';
import type { CallOptions } from '../methods.ts';
import type { Answer, Request } from '../shapes.ts';

/** The answer of appendEvent. `replayed`: the event was recorded earlier, under the same idempotency key. */
export type Appended = Answer<AppendEventResponse> & { readonly replayed: boolean };

/** An event to append. The client makes an idempotency key if none is given. */
export type StreamedEvent = Request<AppendEventRequest> & Pick<CallOptions, 'idempotencyKey' | 'deliveryChain'>;

/** What became of one event: the service's answer, or the error that append() rejects with. */
export type AppendOutcome =
  | { readonly event: StreamedEvent; readonly appended: Appended; readonly error: null }
  | { readonly event: StreamedEvent; readonly appended: null; readonly error: unknown };

export interface AppendStreamOptions {
  /** How many events may be sent without having their outcome; 256 if left out. The service accepts up to 512. */
  readonly maxInFlight?: number;
  /** How many accepted events may be without an outcome, sent or not; 10,000 if left out. */
  readonly maxQueued?: number;
  /** How many connections in a row may bring no outcome before the open events are rejected; 8 if left out. */
  readonly attemptsMax?: number;
  /** Ends the stream at once. Open events reject with the signal's reason, and may still be recorded. */
  readonly signal?: AbortSignal;
}

/**
 * Appends events in order over one gRPC stream (AppendEvents). Events of one ledger are decided in the order of the
 * `append` calls. After an error that allows a retry, the stream opens a new connection and resumes from the first
 * event without an outcome, with the same idempotency keys: no event is lost, duplicated or reordered.
 */
export interface AppendStream extends AsyncDisposable {
  /**
   * Accepts an event and resolves with the service's answer. Rejects with LedgerTrustError if the event is refused; the
   * stream goes on. If the error allows a retry, all later events are rejected with it, so that the order holds: append
   * all of them again. Code `not_sent`: the stream is closed or full. An event that may have been written rejects with
   * an error that says so (`connection_lost`, `outcome_unknown`), even if a later attempt failed for another reason.
   */
  append(event: StreamedEvent): Promise<Appended>;
  /** Resolves when the next event would be sent without waiting. Rejects with the signal's reason after an abort. */
  ready(): Promise<void>;
  /**
   * Appends all events and yields their outcomes in the same order. Reads at most `maxInFlight` events ahead. A refused
   * event is an outcome with an `error`. Throws what `events` throws, and the signal's reason after an abort.
   */
  appendAll(events: Iterable<StreamedEvent> | AsyncIterable<StreamedEvent>): AsyncIterable<AppendOutcome>;
  /** Accepts no more events, and resolves when every event has its outcome. */
  close(): Promise<void>;
}
