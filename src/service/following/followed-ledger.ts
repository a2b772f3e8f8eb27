import { setImmediate } from 'node:timers/promises';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { chainCheck, type IntegrityIssue } from '../../domain/event/integrity.ts';
import type { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import { type Clock, sleep } from '../../runtime/clock/clock.ts';
import type { Log } from '../../runtime/telemetry/log.ts';
import type { LedgerStore, StoredEntry } from '../../store/ledger-store.ts';
import { isJson } from '../reading/event-page.ts';
import type { SealCheck } from '../reading/seal-check.ts';
import { missing, readEvent } from '../reading/stored-event.ts';
import { boundedLedgers } from '../walking/bounded-stores.ts';
import { unboundedWalk, type Walk } from '../walking/walk.ts';
import type { FollowMeter } from './follow-meter.ts';
import { FollowedCheckpoints, type FollowedCheckpointsParts } from './followed-checkpoints.ts';
import { FollowedEvent } from './followed-event.ts';
import { type FollowedPage, type FollowedPages, pageFrom, pageSeqs } from './followed-pages.ts';
import type { GrantsMemory } from './grants-memory.ts';
import { LearnedHeads } from './learned-heads.ts';
import type { HeadWatch, LedgerHeads } from './ledger-heads.ts';
import { type NewestShown, newestReadable } from './newest-readable.ts';
import { SharedAccesses } from './shared-accesses.ts';

/** A read ends with the event that takes it beyond so many characters. */
const readCharsMax = 256 * 1024;
/** Pause after a failure of the store. */
const retryMs = 1_000;
/** Time of the main thread to read and check an event, and to encode it once, ms, as measured on a quiet machine. */
const readMs = 0.05;
/** The same for one follower that is woken up, and for each event that it is sent: stream and socket. */
const wakeMs = 0.005;
const sendMs = 0.005;
/** Followers are woken up for about this time, ms, before appends go on. */
const stepMs = 5;
/** After so many calls of `grantChanged` other work goes on: some ms if all of them end streams. */
const toldAtOnce = 100;
/** So far behind the head followers read on their own account. Nearer events are read once for all. */
const sharedSeqs = 2 * pageSeqs;

export interface FollowedLedgerParts extends FollowedCheckpointsParts {
  readonly ledgers: LedgerStore;
  readonly heads: Pick<LedgerHeads, 'watch' | 'learn'>;
  readonly pages: FollowedPages;
  readonly seals: SealCheck;
  readonly meter: FollowMeter;
  readonly clock: Clock;
  readonly log: Log;
  /** While appends fill the machine, events wait for it before followers get them. */
  readonly limiter: Pick<BackgroundLimiter, 'delayMs'>;
  readonly grantsMemory: GrantsMemory;
}

/** When this node learned that the event of a seq is durable (monotonic, ms). */
type LearnedMs = (seq: number) => number;

interface GrantListener {
  /** An event changed a grant of the actor. Called before the event can be read. */
  grantChanged(event: FollowedEvent): void;
}

export interface LedgerFollower extends GrantListener {
  /** More events can be read. */
  advanced(): void;
  readonly actorId: string;
  /** Whether an event may end the follower's access. */
  readonly mayEnd: boolean;
}

/**
 * The tail of one ledger on this node, which all its followers share. Each new event is read from the store once, by
 * this tail, before followers hear of it. So an event that ends somebody's access does so before it or any later event
 * is sent.
 */
export class FollowedLedger {
  readonly ledgerId: string;
  readonly checkpoints: FollowedCheckpoints;
  readonly accesses: SharedAccesses;
  readonly #parts: FollowedLedgerParts;
  readonly #followers = new Set<LedgerFollower>();
  /** By actor. */
  readonly #listeners = new Map<string, Set<GrantListener>>();
  readonly #walk: Walk;
  #watch: HeadWatch | null = null;
  #opening: Promise<void> | null = null;
  /** The newest seq that was read by the tail, or that was the head when the tail began. */
  #readSeq = -1;
  /** The newest seq that followers may read. */
  #shownSeq = -1;
  #newest: { readonly seq: number; readonly read: Promise<NewestShown | null> } | null = null;
  #advancing = false;
  readonly #unread = new LearnedHeads();
  #cancelRetry = () => {};
  #isClosed = false;

  constructor(ledgerId: string, parts: FollowedLedgerParts) {
    this.ledgerId = ledgerId;
    this.#parts = parts;
    this.checkpoints = new FollowedCheckpoints(ledgerId, parts);
    this.accesses = new SharedAccesses(parts.grantsMemory);
    this.#walk = unboundedWalk();
  }

  /** The newest seq that followers may read. */
  get shownSeq(): number {
    return this.#shownSeq;
  }

  /** The newest event that followers may read and that can be parsed. It is read once for all of them. */
  newest(): NewestShown | null | Promise<NewestShown | null> {
    const seq = this.#shownSeq;
    const inMemory = this.at(seq)?.event;
    if (inMemory !== undefined) return inMemory;
    if (this.#newest?.seq !== seq) {
      const store = boundedLedgers(this.#walk, this.#parts.ledgers);
      const read = newestReadable(store, this.ledgerId, null, seq);
      const newest = { seq, read };
      this.#newest = newest;
      read.catch(() => {
        if (this.#newest === newest) this.#newest = null;
      });
    }
    return this.#newest.read;
  }

  /** Resolves once the tail has begun: from then on no change of a grant is missed. */
  open(): Promise<void> {
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<void> {
    const watch = await this.#parts.heads.watch(this.ledgerId, () => this.#headAdvanced());
    if (this.#isClosed) return watch[Symbol.dispose]();
    this.#readSeq = watch.seq;
    this.#shownSeq = watch.seq;
    this.#watch = watch;
  }

  add(follower: LedgerFollower): void {
    this.#followers.add(follower);
    if (follower.mayEnd) this.listen(follower.actorId, follower);
  }

  remove(follower: LedgerFollower): void {
    this.#followers.delete(follower);
    this.unlisten(follower.actorId, follower);
  }

  /** From now on the listener is told of changes of the actor's grants, as the tail reads them. */
  listen(actorId: string, listener: GrantListener): void {
    const listeners = this.#listeners.get(actorId) ?? new Set();
    this.#listeners.set(actorId, listeners.add(listener));
  }

  unlisten(actorId: string, listener: GrantListener): void {
    const listeners = this.#listeners.get(actorId);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.#listeners.delete(actorId);
  }

  /** Nobody follows the ledger any more. */
  close(): void {
    this.#isClosed = true;
    this.#cancelRetry();
    this.#watch?.[Symbol.dispose]();
    this.#parts.pages.forget(this.ledgerId);
  }

  at(seq: number): FollowedEvent | null | undefined {
    return this.#parts.pages.at(this.ledgerId, seq);
  }

  /**
   * Reads the event of a seq that is not above `shownSeq`, and others beside it. `walk` is charged if the event is far
   * behind the head.
   */
  async read(seq: number, walk: (read: (walk: Walk) => Promise<void>) => Promise<void>): Promise<FollowedEvent | null> {
    const page = await this.#pageWith(seq, (part) =>
      seq > this.#readSeq - sharedSeqs
        ? this.#extend(part, this.#shownSeq, this.#walk, null)
        : walk((own) => this.#extend(part, this.#shownSeq, own, null)),
    );
    return page.events[seq - page.first] ?? null;
  }

  /**
   * Reads on in the page of a seq until it has that seq. Throws if a read brings nothing, so that each read makes
   * progress.
   */
  async #pageWith(seq: number, extend: (page: FollowedPage) => Promise<void>): Promise<FollowedPage> {
    const { pages } = this.#parts;
    let page = pages.use(this.ledgerId, seq);
    while (page.first + page.events.length <= seq) {
      // Dropped while it was read: begun anew it might be dropped again. From `seq` on one read is enough.
      if (!pages.has(page)) page = pageFrom(this.ledgerId, seq);
      if (page.reading !== null) {
        await page.reading;
        continue;
      }
      const known = page.events.length;
      await underWay(page, extend(page));
      if (page.events.length === known)
        throw new Error(`the log of ledger ${this.ledgerId} does not show seq ${seq} yet`);
    }
    return page;
  }

  #headAdvanced(): void {
    if (this.#watch === null) return;
    this.#unread.learned(this.#watch.seq, this.#watch.learnedMs);
    void this.#advance();
  }

  /** Lets the followers read the new events, as fast as appends leave time for it. */
  async #advance(): Promise<void> {
    const watch = this.#watch;
    if (this.#advancing || watch === null) return;
    this.#advancing = true;
    const { clock, log } = this.#parts;
    try {
      while (!this.#isClosed && this.#shownSeq < watch.seq) {
        await this.#timeFor(readMs * Math.min(watch.seq - this.#shownSeq, pageSeqs), watch);
        if (this.#isClosed) return;
        if (this.#readSeq === this.#shownSeq) await this.#readOn(watch);
        const events = Math.min(this.#readSeq - this.#shownSeq, pageSeqs);
        this.#shownSeq += events;
        await this.#wakeAll(events, watch);
      }
    } catch (error) {
      if (this.#isClosed) return;
      log.warn({ err: error, ledger_id: this.ledgerId }, 'reading a followed ledger failed; it is tried again');
      this.#cancelRetry();
      this.#cancelRetry = clock.after(retryMs, () => void this.#advance());
    } finally {
      this.#advancing = false;
    }
  }

  /**
   * Tells the followers of new events, some followers at a time, so that appends go on in between. Each gets all of the
   * events at once: one write to a socket costs as much as some events.
   */
  async #wakeAll(events: number, watch: HeadWatch): Promise<void> {
    const costMs = wakeMs + sendMs * events;
    const atOnce = Math.max(1, Math.floor(stepMs / costMs));
    const left = [...this.#followers];
    try {
      while (left.length > 0 && !this.#isClosed) {
        await this.#timeFor(costMs * Math.min(left.length, atOnce), watch);
        for (const follower of left.splice(0, atOnce)) follower.advanced();
        await setImmediate();
        if (left.length > 0) await this.#readAhead(watch);
      }
    } catch (error) {
      // What is shown already needs no further read.
      for (const follower of left) follower.advanced();
      throw error;
    }
  }

  /** Waits until appends leave so much time. */
  async #timeFor(ms: number, watch: HeadWatch): Promise<void> {
    const { limiter, clock } = this.#parts;
    for (let waitMs = limiter.delayMs(ms); waitMs > 0 && !this.#isClosed; waitMs = limiter.delayMs(ms)) {
      await this.#readAhead(watch);
      await sleep(clock, waitMs);
    }
  }

  /** Reads what followers cannot be shown yet, if it may end an access, so that the access ends at once. */
  async #readAhead(watch: HeadWatch): Promise<void> {
    while (this.#mayEnd && this.#readSeq < watch.seq) await this.#readOn(watch);
  }

  get #mayEnd(): boolean {
    for (const { mayEnd } of this.#followers) if (mayEnd) return true;
    return false;
  }

  /** Reads what follows the newest event that was read, as far as its page goes. */
  async #readOn(watch: HeadWatch): Promise<void> {
    const page = await this.#pageWith(this.#readSeq + 1, (part) => {
      // Each read goes as far as the head has come meanwhile: it may find the end of an access.
      const { seq: headSeq, learnedMs } = watch;
      return this.#extend(part, headSeq, this.#walk, (seq) => this.#unread.learnedMs(seq) ?? learnedMs);
    });
    this.#readSeq = Math.min(page.first + page.events.length - 1, watch.seq);
    this.#unread.forget(this.#readSeq);
  }

  /**
   * Adds what the store has of the page, at most up to `throughSeq`. `learnedMs` null: a read of the past, which tells
   * nobody of changes of grants. The tail told of them, or they were stored before it began.
   */
  async #extend(page: FollowedPage, throughSeq: number, walk: Walk, learnedMs: LearnedMs | null): Promise<void> {
    const { ledgers, seals, meter, pages } = this.#parts;
    const store = boundedLedgers(walk, ledgers);
    const from = page.first + page.events.length;
    const end = Math.min(page.first + pageSeqs - 1, throughSeq);
    if (from > end) return;
    const found = await store.read(this.ledgerId, from, end - from + 1, readCharsMax);
    // In place of lost events the store returns later ones, which belong to other pages.
    const entries = found.filter(({ seq }) => seq <= end);
    meter.pageRead(entries.length);
    // A seq before an event that was found is lost. If none was found, events of the past are lost, and new ones may
    // still come: the tail reads again.
    const knownSeq = Math.min(found.at(-1)?.seq ?? (learnedMs === null ? end : from - 1), end);
    if (entries.length === 0) {
      // The event behind them says that they are missing: the check of its page begins before it.
      this.#addLost(page, knownSeq);
      return;
    }
    const before = from === 0 ? null : await this.#eventBefore(from, store);
    const place = { ledgerId: this.ledgerId, scopes: null };
    const faults: IntegrityIssue[] = [];
    const check = chainCheck({ kind: 'ledger', before }, faults);
    const read: {
      readonly entry: StoredEntry;
      readonly event: LedgerEvent | null;
      readonly issues: IntegrityIssue[];
    }[] = [];
    for (const entry of entries) {
      const event = readEvent(entry, place, faults);
      if (event !== null) check(event);
      read.push({ entry, event, issues: faults.splice(0) });
    }
    const events = read.map(({ event }) => event).filter((event) => event !== null);
    const bySeal = Map.groupBy(await seals(walk, events, false), ({ eventId }) => eventId);
    let carried: IntegrityIssue[] = [];
    let told = 0;
    for (const { entry, event, issues } of read) {
      carried.push(...this.#addLost(page, entry.seq - 1));
      const all = [...carried, ...issues, ...(event === null ? [] : (bySeal.get(event.id) ?? []))];
      // An event that cannot be shown leaves its issues to the next one.
      const isShown = event !== null && (all.length === 0 || isJson(event));
      carried = isShown ? [] : all;
      const followed = isShown
        ? new FollowedEvent(event, all, learnedMs?.(event.seq) ?? null, () => meter.encoded())
        : null;
      if (learnedMs !== null && followed !== null) told += this.#tellGrantChange(followed);
      pages.add(page, followed, entry.row.length);
      if (told < toldAtOnce) continue;
      told = 0;
      await setImmediate();
    }
    this.#addLost(page, knownSeq);
  }

  /** Adds to a page that its next events up to `throughSeq` are lost. Returns their issues. */
  #addLost(page: FollowedPage, throughSeq: number): IntegrityIssue[] {
    const issues: IntegrityIssue[] = [];
    for (let seq = page.first + page.events.length; seq <= throughSeq; seq += 1) {
      issues.push(missing(seq));
      this.#parts.pages.add(page, null, 0);
    }
    return issues;
  }

  /** Tells the listeners of the actor whose grant the event changes. Returns how many they are. */
  #tellGrantChange(followed: FollowedEvent): number {
    if (followed.grantChange === null) return 0;
    const listeners = this.#listeners.get(followed.grantChange.delegateActorId) ?? [];
    const told = [...listeners];
    for (const listener of told) listener.grantChanged(followed);
    return told.length;
  }

  async #eventBefore(from: number, store: ReturnType<typeof boundedLedgers>): Promise<LedgerEvent | null> {
    const known = this.at(from - 1);
    if (known) return known.event;
    const [entry] = await store.read(this.ledgerId, from - 1, 1, readCharsMax);
    return entry?.seq === from - 1 ? readEvent(entry, { ledgerId: this.ledgerId, scopes: null }, []) : null;
  }
}

/** Notes the read at its page until it has ended, so that others wait for it. Ends when it is noted no more. */
async function underWay(page: FollowedPage, reading: Promise<void>): Promise<void> {
  page.reading = Promise.allSettled([reading]).then(() => {
    page.reading = null;
  });
  await page.reading;
  await reading;
}
