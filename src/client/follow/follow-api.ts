import type { Integrity } from '../../gen/svc/v1/event_pb.ts';
import type { FollowHead as FollowHeadMessage } from '../../gen/svc/v1/follow_pb.ts';
import type { LedgerTrustError } from '../error.ts';
import type { Event } from '../event.ts';
import type { CallOptions } from '../methods.ts';
import type { Answer } from '../shapes.ts';
import type { AuthorityKeys, KeySource } from '../verify/key-source.ts';
import type { EventChecks } from '../verify/verifying.ts';

/** What is followed, and from where on. */
export interface FollowRequest {
  /** The ledger. With a `masterId` it may be left out; if given, the events must be of it. */
  readonly ledgerId?: string;
  /** The master, whose events alone are followed. */
  readonly masterId?: string;
  /**
   * The last event that you have: its `seq`, or its `masterSeq` if a master is followed; -1 for the first event on. If
   * you give more of it than that, the event must still have this `hash`. Only new events if left out.
   */
  readonly after?: number | FollowPlace;
  /**
   * You may read only some masters of the ledger. A gap in the ledger is no fault then, and the chain hash behind a gap
   * cannot be recomputed; a gap in a master is a fault still. A master may begin anywhere.
   */
  readonly segment?: boolean;
}

/** An event that was handed out, as far as it is needed to go on behind it. Keep it to resume later. */
export type FollowPlace = Pick<Event, 'seq' | 'masterSeq' | 'hash'>;

/** An event, and what of it was checked. */
export interface FollowedEvent extends Event {
  readonly checks: EventChecks;
}

/** The newest event that the reader may read. */
export type FollowHead = Answer<FollowHeadMessage>;

/** What is wrong with an event, as this client or the service found it. */
export type FollowIssues = Answer<Integrity>['issues'];

export interface FollowOptions extends Pick<CallOptions, 'signal'> {
  /** The public keys of the actors. Those that the service's resolver publishes if left out. */
  readonly keys?: KeySource;
  /** The keys of the authority. Those of the service's trust anchor if left out. null: seals are not checked. */
  readonly authorityKeys?: AuthorityKeys | null;
  /** Called once, when you have taken every event of the past and ask for the next one. */
  readonly onCaughtUp?: (head: FollowHead) => void;
  /** Called before each wait to connect again. */
  readonly onRetry?: (retry: FollowRetry) => void;
  /**
   * Called with what is wrong, before the event is handed out. A `wrong_checkpoint` is of all events up to the size of
   * the checkpoint: it is told once, without an `eventId`, and `event` is the last one that was taken. Without
   * `onIssues`, following ends there with `integrity_failed`. An event that was handed out before is never handed out
   * again.
   */
  readonly onIssues?: (issues: FollowIssues, event: Event) => void;
  /**
   * Milliseconds without a message after which the connection counts as lost; 45,000 if left out. The service sends a
   * heartbeat every 15 s.
   */
  readonly silenceMaxMs?: number;
}

export interface FollowRetry {
  /** Why the stream ended. */
  readonly error: LedgerTrustError;
  /** Milliseconds until it is opened again. */
  readonly waitMs: number;
}

export interface Following {
  /**
   * Follows a ledger or a master: yields every event as soon as it is durable, once and in order. It verifies each one
   * before it hands it out, and connects again behind the last one, for as long as it takes. Over REST it reads
   * server-sent events, over gRPC a server stream.
   *
   * Ends behind LEDGER_CLOSED or MASTER_CLOSED, or once that event was read and checked where following begins behind
   * it, or cannot be read by this reader. If the service says that nothing follows and shows no such event, it is asked
   * again (`invalid_answer` in `onRetry`; thrown if no stream has brought a message). Throws `permission_denied` or
   * `access_expired` when the grant ends, ProofRefused for a checkpoint of a heartbeat that does not verify or
   * contradicts the kept one (the others are kept as the client's watermark of the log), `integrity_failed` for an
   * event that does not verify, is missing, comes again or is none of those that such a checkpoint signs, the signal's
   * reason after an abort, `not_sent` once the client is closed, and what any call throws if the first connection
   * fails.
   */
  follow(request: FollowRequest, options?: FollowOptions): AsyncIterable<FollowedEvent>;
}
