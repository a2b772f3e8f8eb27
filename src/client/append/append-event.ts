import type { AppendEventRequest, AppendEventResponse } from '../../gen/svc/v1/masters_pb.ts';
import type { LedgerTrustError } from '../error.ts';
import type { CallOptions } from '../methods.ts';
import type { Answer, Request } from '../shapes.ts';

/** An event to append. The client makes an idempotency key if none is given. */
export type StreamedEvent = Request<AppendEventRequest> & Pick<CallOptions, 'idempotencyKey' | 'deliveryChain'>;

/** The answer of appendEvent. `replayed`: the event was recorded earlier, under the same idempotency key. */
export type Appended = Answer<AppendEventResponse> & { readonly replayed: boolean };

/** What became of one event of appendAll(): the service's answer, or the error that append() rejects with. */
export type AppendOutcome =
  | { readonly event: StreamedEvent; readonly appended: Appended; readonly error: null }
  | { readonly event: StreamedEvent; readonly appended: null; readonly error: unknown };

/** An event that was accepted and has no outcome yet. */
export interface OpenEvent {
  /** The serialized request. Rejects if the event cannot be signed or serialized; the event is rejected then. */
  readonly request: Promise<Buffer>;
  /**
   * The last error that left open whether the event was written. null if it was never sent, or if every error said that
   * it was not written.
   */
  uncertain: LedgerTrustError | null;
  resolve(appended: Appended): void;
  reject(error: unknown): void;
}
