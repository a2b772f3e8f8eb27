import type { AppendStream, AppendStreamOptions } from './append/append-api.ts';
import type { EventReading } from './event-reading.ts';
import type { Following } from './follow/follow-api.ts';
import type { CallOptions, UnaryMethods } from './methods.ts';
import type { ProofReading } from './proofs/proof-reading.ts';
import type { services } from './services.ts';

/**
 * The typed client of the Ledger Trust Service: a method for each method of the API, the same over REST and gRPC. Calls
 * are signed if they have to be, and retried if that is safe.
 *
 * A call rejects with LedgerTrustError, with the signal's reason after an abort, or with TypeError if the request has
 * an unknown field or a value of the wrong type. Checkpoints and proofs that do not verify reject with ProofRefused.
 */
export interface LedgerTrustClient
  extends UnaryMethods<typeof services>,
    EventReading,
    ProofReading,
    Following,
    AsyncDisposable {
  /** Runs the service's demonstration (GET /sandbox/run) and yields its lines as they arrive. */
  runSandbox(options?: Pick<CallOptions, 'signal'>): AsyncIterable<string>;
  /**
   * Opens a stream for clients that append continuously. Node only. Throws TypeError without `grpcUrl`, or for limits
   * that cannot work.
   */
  appendStream(options?: AppendStreamOptions): AppendStream;
  /**
   * Sends nothing more, ends what is followed, and closes the connections once the running calls have ended.
   * Close append streams first: events that they have not sent are rejected.
   */
  close(): Promise<void>;
}
