import type { AppendEventRequest, AppendEventResponse } from '../gen/svc/v1/masters_pb.ts';
import type { LedgerTrustError } from './error.ts';
import type { CallOptions } from './methods.ts';
import type { Answer, Request } from './shapes.ts';

/** An event to append; the idempotency key is made if it is not given. */
export type StreamedEvent = Request<AppendEventRequest> & Pick<CallOptions, 'idempotencyKey' | 'deliveryChain'>;

/** What appendEvent answers. `replayed`: it was recorded earlier, under the same idempotency key. */
export type Appended = Answer<AppendEventResponse> & { readonly replayed: boolean };

export type AppendOutcome =
  | { readonly event: StreamedEvent; readonly appended: Appended; readonly error: null }
  | { readonly event: StreamedEvent; readonly appended: null; readonly error: unknown };

/** An event that was taken and has no outcome yet. */
export interface OpenEvent {
  /** The serialized request; rejects where the event cannot be made into one, and then the event is settled. */
  readonly request: Promise<Buffer>;
  /** The last failure that left open whether it was written; null where it was never sent, or every failure said that it was not. */
  uncertain: LedgerTrustError | null;
  resolve(appended: Appended): void;
  reject(error: unknown): void;
}
