import { largestBatchEvents } from '../../actors/bounds.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { LedgerFacts } from '../../domain/event/facts.ts';
import type { IntegrityIssue } from '../../domain/event/integrity.ts';
import type { Call } from '../calls/call.ts';
import { type EventPage, type EventSource, readEventPage } from '../reading/event-page.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import type { FollowEnd } from './follow-meter.ts';
import type { FollowersParts } from './follow-parts.ts';
import { type FollowQuery, matchesQuery } from './follow-query.ts';
import {
  eventAnswer,
  type FollowAnswer,
  type FollowedEvent,
  headOf,
  heartbeatAnswer,
  resume,
} from './followed-event.ts';
import type { FollowedLedger, LedgerFollower } from './followed-ledger.ts';
import { type NewestShown, newestReadable } from './newest-readable.ts';
import type { ReaderAccess } from './reader-access.ts';
import { withRetryHint } from './retry-hint.ts';
import { type FollowStart, StreamPosition } from './stream-position.ts';
import { WakefulStream } from './wakeful-stream.ts';

/** A follower of some masters that is further behind reads along their scopes, not the whole ledger. */
const nearSeqs = 1_000;
const pastPageEvents = 100;

type Past = Generator<FollowAnswer, undefined>;

/** One stream: its position in the ledger, and what its reader may see from there on. */
export class Follower extends WakefulStream<FollowAnswer> implements LedgerFollower {
  readonly access: ReaderAccess;
  /** When the last heartbeat was due, or the stream began (monotonic, ms). */
  beatMs: number;
  readonly #parts: FollowersParts;
  readonly #ledger: FollowedLedger;
  readonly #call: Call;
  readonly #facts: LedgerFacts;
  readonly #masterId: string | null;
  readonly #query: FollowQuery;
  readonly #left: (follower: Follower) => void;
  readonly #position: StreamPosition;
  #isCaughtUp = false;
  /** Whether anything but heartbeats was sent. */
  #hasSent = false;
  #hasSentEvent = false;
  #isBeatDue = false;
  /** What is left of a page that lies far behind. */
  #past: Past | null = null;
  /** When the access of the call was recorded last (monotonic, ms). */
  #recordedMs: number;
  #reason: FollowEnd | null = null;

  /** `left` is called once, when the stream has ended. */
  constructor(
    parts: FollowersParts,
    ledger: FollowedLedger,
    call: Call,
    target: { readonly facts: LedgerFacts; readonly masterId: string | null },
    query: FollowQuery,
    access: ReaderAccess,
    start: FollowStart,
    left: (follower: Follower) => void,
  ) {
    super();
    this.access = access;
    this.#parts = parts;
    this.#ledger = ledger;
    this.#call = call;
    this.#facts = target.facts;
    this.#masterId = target.masterId;
    this.#query = query;
    this.#left = left;
    this.#position = new StreamPosition(target.masterId, query, access, start);
    this.beatMs = parts.monotonicMs();
    this.#recordedMs = this.beatMs;
  }

  get actorId(): string {
    return this.access.actorId;
  }

  /** null: a ledger is followed. */
  get masterId(): string | null {
    return this.#masterId;
  }

  get mayEnd(): boolean {
    return this.access.mayEnd;
  }

  get ledger(): FollowedLedger {
    return this.#ledger;
  }

  get reason(): FollowEnd {
    if (this.#reason !== null) return this.#reason;
    const { aborted, ending, isStalled } = this.#call;
    if (!aborted) return 'failed';
    if (isStalled && (ending === null || ending.code === 'unavailable')) return 'stalled';
    return ending === null ? 'caller_gone' : 'credential';
  }

  advanced(): void {
    this.wake();
  }

  grantChanged({ grantChange, event }: FollowedEvent): void {
    if (grantChange !== null) this.access.learn(grantChange, event.seq);
    this.checkAccess();
  }

  /** Ends the stream if its reader may not read on. */
  checkAccess(nowMs = this.#parts.clock.now()): void {
    const fault = this.access.fault(nowMs);
    if (fault === null) return;
    const ofCode: Partial<Record<string, FollowEnd>> = { access_expired: 'expired', overloaded: 'overloaded' };
    this.end(withRetryHint(fault, this.#parts.random), ofCode[fault.code] ?? 'revoked');
  }

  /**
   * Whether the reader may still be told something, of an event that was written at `createdAt` if one is given. The
   * clock of the node that wrote it may be ahead. Ends the stream if a grant has run out, or if another stream of the
   * actor has learned of an end.
   */
  #mayTell(createdAt?: string): boolean {
    if (this.access.faultFromMs !== Number.POSITIVE_INFINITY) {
      const nowMs = this.#parts.clock.now();
      const atMs = createdAt === undefined ? nowMs : Math.max(nowMs, Date.parse(createdAt));
      if (this.access.faultFromMs <= atMs) this.checkAccess(atMs);
    }
    return !this.#call.aborted;
  }

  /** Compares the access with what is stored: a grant may have changed just before the tail began. */
  async checkStored(): Promise<void> {
    if (!this.access.mayEnd) return;
    const { reading } = this.#parts;
    this.access.learnStored(
      await this.#call.partWalk((walk) => reading.heldGrants(walk, this.#facts, this.actorId, this.#masterId)),
    );
    this.checkAccess();
  }

  end(error: LedgerError, reason: FollowEnd): void {
    if (this.#call.aborted) return;
    this.#reason = reason;
    this.#call.endWith(error);
  }

  /** Has the checkpoint made that the next heartbeat brings. */
  prepareBeat(): void {
    if (this.access.isWhole)
      this.#ledger.checkpoints.prepare(this.#masterId, this.#ledger.shownSeq, (read) => this.#call.partWalk(read));
  }

  beat(nowMs: number): void {
    this.beatMs = nowMs;
    this.#isBeatDue = true;
    this.wake();
  }

  protected override ended(): void {
    this.#left(this);
  }

  protected override failure(error: unknown): unknown {
    return withRetryHint(error, this.#parts.random);
  }

  protected override async find(): Promise<FollowAnswer | 'wait' | 'end'> {
    if (this.#hasSentEvent && this.#query.eventId !== null) return this.#endWell('filter_end');
    while (!this.#call.aborted) {
      // A stream that resumes behind all that is followed brings no message: its reader need not come back.
      if (this.#position.isAtEnd && !this.#hasSent && this.#query.after !== null) return this.#endWell('closed');
      if (this.#isBeatDue) {
        this.#isBeatDue = false;
        const heartbeat = await this.#heartbeat();
        if (heartbeat !== null && this.#mayTell()) return heartbeat;
        continue;
      }
      if (this.#position.isAhead(this.#ledger.shownSeq)) return 'wait';
      const past = this.#past?.next();
      if (past?.done === false) return past.value;
      this.#past = null;
      if (this.#position.nextSeq > this.#ledger.shownSeq || this.#position.isAtEnd) {
        if (this.#isCaughtUp) return this.#position.isAtEnd ? this.#endWell('closed') : 'wait';
        this.#isCaughtUp = true;
        const caughtUp = await this.#caughtUp();
        if (this.#mayTell()) return caughtUp;
        continue;
      }
      if (this.#isFarBehind) {
        this.#past = await this.#readPast();
        continue;
      }
      const inMemory = this.#ledger.at(this.#position.nextSeq);
      // What was read may not be in memory any more: it is taken from the read.
      const followed = inMemory === undefined ? await this.#read() : inMemory;
      if (this.#call.aborted || this.#isBeatDue) continue;
      // Between this look at the access and the answer nothing is awaited.
      this.#position.nextSeq += 1;
      if (followed === null) continue;
      const answer = this.#take(followed);
      if (answer === 'end') return this.#endWell('filter_end');
      if (answer === null) continue;
      const checked = answer instanceof Promise ? await answer : answer;
      if (!this.#mayTell(followed.event.createdAt)) continue;
      // Until it has caught up, a stream is sent its past, whose age is no lag.
      return this.#sent(checked, this.#isCaughtUp ? followed.learnedMs : null);
    }
    return 'end';
  }

  #endWell(reason: FollowEnd): 'end' {
    this.#reason = reason;
    return 'end';
  }

  get #isFarBehind(): boolean {
    return !this.#position.readsAll && this.#ledger.shownSeq - this.#position.nextSeq > nearSeqs;
  }

  #read(): Promise<FollowedEvent | null> {
    return this.#ledger.read(this.#position.nextSeq, (read) => this.#call.partWalk(read));
  }

  /** Passes an event. null: it is not sent. 'end': the filter ends before it. */
  #take(followed: FollowedEvent): FollowAnswer | Promise<FollowAnswer> | null | 'end' {
    const { event } = followed;
    if (this.#position.pass(event) === 'end') return 'end';
    if (!this.access.covers(event)) return null;
    const issues = this.#position.linkIssues(event);
    this.#position.keepNewest(event);
    if (!matchesQuery(event, this.#query)) return null;
    if (this.#query.verifySignatures && event.actorSig !== null) return this.#verified(followed, issues);
    if (issues.length > 0) return eventAnswer(event, [...followed.issues, ...issues], this.#position.resumeAfter);
    return this.#masterId === null ? followed.ofLedger : followed.ofMaster;
  }

  async #verified(followed: FollowedEvent, issues: readonly IntegrityIssue[]): Promise<FollowAnswer> {
    const { event } = followed;
    const { resumeAfter } = this.#position;
    const bySignature = await this.#call.partWalk((walk) => this.#parts.seals(walk, [event], true));
    const all = [...followed.issues, ...issues, ...bySignature.filter(({ type }) => type === 'invalid_actor_sig')];
    if (all.length > 0) return eventAnswer(event, all, resumeAfter);
    return this.#masterId === null ? followed.ofLedger : followed.ofMaster;
  }

  /** Reads a page of what lies far behind, along the scopes that the reader may see. */
  async #readPast(): Promise<Past> {
    const { ledgers, seals } = this.#parts;
    const { shownSeq } = this.#ledger;
    const { ledgerId } = this.#facts;
    const { eventType, eventId, verifySignatures } = this.#query;
    const kind = this.#masterId === null ? 'segment' : 'master';
    const source: EventSource = { ledgerId, scopes: this.access.scopes, kind };
    const page = await this.#call.partWalk((walk) =>
      readEventPage(boundedLedgers(walk, ledgers), seals, source, {
        ...{ limit: pastPageEvents, offset: 0, descending: false, eventType, eventId, verifySignatures },
        ...{ fromSeq: this.#position.nextSeq, from: null, to: null, startSeq: null },
      }),
    );
    // It is possible that no scope lists the newest batch yet: the tail reads its events by their seqs.
    return this.#pastOf(page, shownSeq - largestBatchEvents);
  }

  /** Passes the events of a page up to `throughSeq`. */
  *#pastOf(page: EventPage, throughSeq: number): Past {
    const issues = Map.groupBy(page.issues, (issue) => issue.eventId);
    for (const event of page.events) {
      // The store may have more than the tail has read: a later event may end the access.
      if (event.seq > throughSeq) {
        this.#position.nextSeq = throughSeq + 1;
        return;
      }
      if (!this.#mayTell(event.createdAt)) return;
      this.#position.nextSeq = event.seq + 1;
      if (this.#position.pass(event) === 'end') return;
      if (!this.access.covers(event)) continue;
      this.#position.keepNewest(event);
      if (!matchesQuery(event, this.#query)) continue;
      yield this.#sent(eventAnswer(event, issues.get(event.id) ?? [], this.#position.resumeAfter), null);
      if (this.#position.isAtEnd) return;
    }
    this.#position.nextSeq = Math.max(
      this.#position.nextSeq,
      Math.min(page.next?.seq ?? Number.POSITIVE_INFINITY, throughSeq + 1),
    );
  }

  #sent(answer: FollowAnswer, learnedMs: number | null): FollowAnswer {
    const { meter, monotonicMs, recordEveryMs } = this.#parts;
    const nowMs = monotonicMs();
    this.#hasSent = true;
    this.#hasSentEvent = true;
    meter.sent();
    if (learnedMs !== null) meter.lag(nowMs - learnedMs);
    if (nowMs - this.#recordedMs >= recordEveryMs) {
      this.#recordedMs = nowMs;
      this.#call.recordAccess();
    }
    return answer;
  }

  /** The head for a reader of the whole ledger; else the newest event that the reader may read. */
  async #newestShown(shownSeq: number): Promise<NewestShown | null> {
    if (this.#position.readsAll) return this.#ledger.newest();
    const { ledgers } = this.#parts;
    // The position of the reader is behind this event, so it must have been passed already.
    const isPassed = this.#position.nextSeq === shownSeq + 1;
    if (isPassed && this.#position.newest !== null) return this.#position.newest;
    const newest = await this.#call.partWalk((walk) =>
      newestReadable(boundedLedgers(walk, ledgers), this.#facts.ledgerId, this.access, shownSeq),
    );
    if (isPassed) this.#position.newest = newest;
    return newest;
  }

  async #caughtUp(): Promise<FollowAnswer> {
    const head = headOf(await this.#newestShown(this.#ledger.shownSeq), this.#masterId);
    this.#hasSent = true;
    return { message: { case: 'caughtUp', value: { head } }, ...resume(this.#position.resumeAfter) };
  }

  /** null: it cannot be made now. The next one is tried anew. */
  async #heartbeat(): Promise<FollowAnswer | null> {
    try {
      return await this.#makeHeartbeat();
    } catch (error) {
      // The store that does not answer is in the log already.
      const level = error instanceof LedgerError ? 'debug' : 'error';
      this.#parts.log[level]({ err: error, ledger_id: this.#facts.ledgerId }, 'a heartbeat is left out');
      return null;
    }
  }

  async #makeHeartbeat(): Promise<FollowAnswer> {
    const { checkpoints, shownSeq } = this.#ledger;
    const newest = await this.#newestShown(shownSeq);
    const checkpoint = this.access.isWhole ? checkpoints.newest(this.#masterId, shownSeq) : null;
    const position = this.#position;
    const resumeAfter = position.isAhead(shownSeq) ? position.resumeAfterWhileAhead(newest) : position.resumeAfter;
    return heartbeatAnswer(headOf(newest, this.#masterId), this.#parts.clock.now(), checkpoint, resumeAfter);
  }
}
