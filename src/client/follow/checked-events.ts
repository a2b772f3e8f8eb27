import type { Event } from '../event.ts';
import type { SignatureCheck } from '../verify/verify-signature.ts';
import { EventVerifier, type VerifyOptions } from '../verify/verifying.ts';
import type { FollowedEvent, FollowHead, FollowIssues, FollowPlace, FollowRequest } from './follow-api.ts';

interface CheckedEventsParts {
  readonly request: FollowRequest;
  readonly checkSignature: SignatureCheck;
  /** The event before this one in its master, which was not followed. null: there is none. */
  masterEventBefore(event: Event): Promise<Event | null>;
}

/** An event of the stream, checked. null: it was handed out before, and is not handed out again. */
interface Checked {
  readonly event: FollowedEvent | null;
  readonly issues: FollowIssues;
}

/** Checks the events of a stream across its reconnects: none is missing, comes again or contradicts another one. */
export class CheckedEvents {
  readonly #parts: CheckedEventsParts;
  readonly #verifier: EventVerifier;
  readonly #ofMaster: boolean;
  #last: Event | null = null;

  constructor(parts: CheckedEventsParts) {
    this.#parts = parts;
    this.#ofMaster = parts.request.masterId !== undefined;
    this.#verifier = new EventVerifier(verifyOptions(parts.request), parts.checkSignature);
  }

  /** The last event, which may be the one that following began behind. */
  get last(): Event | null {
    return this.#last;
  }

  /** Begins behind an event that the user has. Returns what is wrong with it. */
  async beginBehind(event: Event, known: Pick<FollowPlace, 'hash'> | null): Promise<FollowIssues> {
    const { issues } = await this.#verifier.take(event);
    this.#last = event;
    if (known === null || known.hash === event.hash) return issues;
    return [...issues, issue(event, 'broken_link', `its hash is not the one that you have of it, ${known.hash}`)];
  }

  /** Takes an event. `found`: what the service says is wrong with it. Rejects with what a look-up of keys throws. */
  async take(event: Event, found: FollowIssues): Promise<Checked> {
    const last = this.#last;
    if (last !== null && event.seq <= last.seq) {
      const detail = `the event has seq ${event.seq} and comes behind the one with seq ${last.seq}`;
      return { event: null, issues: [issue(event, 'broken_link', detail)] };
    }
    const gap = this.#gapInMaster(event);
    if (this.#verifier.lacksMasterOf(event)) {
      const before = await this.#parts.masterEventBefore(event);
      if (before !== null && before.masterId === event.masterId) this.#verifier.learnMaster(before);
    }
    const { issues, checks } = await this.#verifier.take(event);
    this.#last = event;
    return { event: { ...event, checks }, issues: [...gap, ...issues, ...found] };
  }

  /**
   * Compares what the service says is the newest event with the last one that was taken. `isCaughtUp`: it also says
   * that it has sent all events up to that one; not of one that was closed, where revocations may follow unsent.
   */
  headIssues({ seq, hash }: FollowHead, isCaughtUp: boolean): FollowIssues {
    const last = this.#last;
    if (last === null) return [];
    if (isCaughtUp && seq > last.seq && (this.#ofMaster || this.#parts.request.segment !== true))
      return [issue(last, 'missing_event', `the service says that it has sent all events up to seq ${seq}`)];
    if (seq !== last.seq || hash === last.hash) return [];
    return [issue(last, 'broken_link', `the service says that the event with this seq has the hash ${hash}`)];
  }

  /** Verifying passes over gaps of a segment. Those within a master are gaps of the stream. */
  #gapInMaster(event: Event): FollowIssues {
    const { masterId, masterSeq } = event;
    if (this.#parts.request.segment !== true || this.#ofMaster || masterId === null || masterSeq === null) return [];
    const before = this.#verifier.masterSeqOf(masterId);
    if (before === null || masterSeq === before + 1) return [];
    const detail = `the events of the master between master_seq ${before} and ${masterSeq} are missing`;
    return [issue(event, 'missing_event', detail)];
  }
}

function verifyOptions({ ledgerId, masterId, segment, after }: FollowRequest): VerifyOptions {
  return {
    // Signatures are checked by the function of the parts.
    keys: { document: () => null },
    trustedKeys: 'all',
    kind: masterId !== undefined ? 'master' : segment ? 'segment' : 'ledger',
    extent: segment && masterId === undefined ? 'some' : after === -1 ? 'all' : 'run',
    ...(ledgerId === undefined ? {} : { ledgerId }),
    ...(masterId === undefined ? {} : { masterId }),
  };
}

function issue(event: Event, type: string, detail: string): FollowIssues[number] {
  return { eventId: event.id, type, detail };
}
