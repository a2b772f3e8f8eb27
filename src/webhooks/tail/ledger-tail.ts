import type { LedgerEvent } from '../../domain/event/event.ts';
import { CorruptRow, parseRow } from '../../domain/event/row.ts';
import { delegationOfType } from '../../domain/event/service-events.ts';
import type { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import type { Log } from '../../runtime/telemetry/log.ts';
import type { StoredEntry } from '../../store/ledger-store.ts';
import { pageCharsMax } from '../../store/pages.ts';
import type { Cursor, Cursors } from './cursor-record.ts';
import { type CursorStart, cursorToStartAt } from './cursor-start.ts';
import { type FanOutParts, fanOut } from './fan-out.ts';
import { LedgerRotation } from './ledger-rotation.ts';
import { changesBy } from './read-spans.ts';
import type { SubscriptionIndex } from './subscription-index.ts';

/** Fewer if they are large (pageCharsMax). The cursor moves after each range. */
const rangeEventsMax = 64;
/** More would only wait for the same disk. */
const rotationBounds = { ledgersAtOnce: 4, ofOneOwner: 3 };
const cursorsMax = 20_000;
const barriersAtOnce = 8;
/** A forgotten ledger needs another barrier: a read, if its actor is in memory. */
const certainMax = 20_000;
/** Pause after a failure of the store. */
const retryMs = 1_000;
/** Main thread time of reading and parsing a row, measured. */
const eventCostMs = 0.03;
/** The same of a read barrier. */
const barrierCostMs = 0.5;

interface LedgerTailParts extends Omit<FanOutParts, 'now'> {
  readonly cursors: Cursors;
  readonly index: SubscriptionIndex;
  readonly limiter: BackgroundLimiter;
  readonly clock: Clock;
  readonly log: Log;
  ownsShardOf(id: string): boolean;
  /** See InFlightWrites. */
  underWayFrom(ledgerId: string): number | null;
  /** The newest seq that this node has answered lately. */
  newestAnswered(ledgerId: string): number | null;
  /** See LedgerActor. */
  readBarrier(ledgerId: string): Promise<number>;
  /** Resolves when every subscription created before the call is in memory, or the node stops. */
  upToDate(): Promise<void>;
  queued(subscriptionId: string): void;
}

/**
 * Tails the logs of watched ledgers. For each range of events it records the deliveries to every subscription whose
 * owner may read them, and then moves the ledger's cursor. After a crash the range begins at the same place, and its
 * recorded deliveries are found: none is missed or doubled.
 */
export class LedgerTail {
  readonly #parts: LedgerTailParts;
  readonly #fanOutParts: FanOutParts;
  readonly #rotation = new LedgerRotation(rotationBounds);
  /** Ledgers whose log shows events that are not answered yet. */
  readonly #heldBack = new Set<string>();
  readonly #cursors = new RecentMap<string, Cursor>(cursorsMax);
  /** Behind the last range whose records this node has stored, though its cursor may not have moved. */
  readonly #recorded = new RecentMap<string, number>(cursorsMax);
  /** Up to which seq a read barrier found the events of a ledger certain. */
  readonly #certain = new RecentMap<string, number>(certainMax);
  readonly #waitingForBarrier = new Set<string>();
  readonly #askingBarrier = new Set<string>();
  #isOpen = false;
  #stopped = false;
  #idle = Promise.withResolvers<void>();

  constructor(parts: LedgerTailParts) {
    this.#parts = parts;
    this.#fanOutParts = { ...parts, now: () => parts.clock.now() };
    this.#idle.resolve();
  }

  /** Call it once every active subscription is known: a cursor that moves without one would skip its events. */
  open(): void {
    this.#isOpen = true;
    this.#startWaiting();
  }

  wake(ledgerId: string): void {
    if (this.#stopped || !this.#parts.ownsShardOf(ledgerId)) return;
    this.#wait(ledgerId);
    this.#startWaiting();
  }

  /** Wakes the ledger if another node has written events after its cursor. */
  async scan(ledgerId: string): Promise<void> {
    if (this.#rotation.has(ledgerId) || this.#heldBack.has(ledgerId) || !this.#isOpen) return;
    const cursor = this.#cursors.get(ledgerId) ?? (await this.#start(ledgerId)).cursor;
    const head = cursor === null ? null : await this.#parts.ledgers.head(ledgerId);
    if (cursor !== null && head !== null && head.seq >= cursor.nextSeq) this.wake(ledgerId);
  }

  release(ledgerId: string): void {
    if (this.#heldBack.delete(ledgerId)) this.wake(ledgerId);
  }

  /** Asks the ledger's actor for a read barrier, and wakes the ledger when it has answered. */
  askBarrier(ledgerId: string): void {
    if (this.#stopped || this.#askingBarrier.has(ledgerId)) return;
    this.#waitingForBarrier.add(ledgerId);
    this.#askNextBarrier();
  }

  /** The first seq that may lack delivery records. Deliveries from there on wait, so that order holds. */
  async position(ledgerId: string): Promise<number> {
    const known = this.#cursors.get(ledgerId) ?? (await this.#parts.cursors.get(ledgerId));
    return Math.max(known?.nextSeq ?? 0, this.#recorded.get(ledgerId) ?? 0);
  }

  forget(ledgerId: string): void {
    this.#rotation.delete(ledgerId);
    this.#heldBack.delete(ledgerId);
    this.#cursors.delete(ledgerId);
    this.#recorded.delete(ledgerId);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#waitingForBarrier.clear();
    await this.#idle.promise;
  }

  #wait(ledgerId: string): void {
    this.#rotation.add(ledgerId, this.#parts.index.watchersOf(ledgerId));
  }

  #startWaiting(): void {
    while (this.#isOpen && !this.#stopped) {
      const isIdle = this.#rotation.running === 0;
      const ledgerId = this.#rotation.begin();
      if (ledgerId === null) return;
      if (isIdle) this.#idle = Promise.withResolvers<void>();
      void this.#run(ledgerId);
    }
  }

  async #run(ledgerId: string): Promise<void> {
    try {
      if (await this.#advance(ledgerId)) this.#wait(ledgerId);
    } catch (error) {
      this.#cursors.delete(ledgerId);
      this.#parts.log.warn({ err: error, ledger_id: ledgerId }, 'fanning out failed; it is tried again');
      this.#parts.clock.after(retryMs, () => this.wake(ledgerId));
    }
    this.#rotation.end(ledgerId);
    // Another node moves the cursor now.
    if (!this.#parts.ownsShardOf(ledgerId)) this.forget(ledgerId);
    this.#startWaiting();
    if (this.#rotation.running === 0) this.#idle.resolve();
  }

  /** Fans out one range. Returns whether there may be more events. */
  async #advance(ledgerId: string): Promise<boolean> {
    const { ledgers, index, limiter, cursors, ownsShardOf, queued } = this.#parts;
    await limiter.take(rangeEventsMax * eventCostMs);
    if (!index.isWatched(ledgerId)) {
      this.#cursors.delete(ledgerId);
      this.#recorded.delete(ledgerId);
      // A cursor removed too early would send events again. One that stays does no harm.
      if (index.isComplete) await cursors.remove(ledgerId);
      return false;
    }
    const cursor = this.#cursors.get(ledgerId) ?? (await this.#begin(ledgerId));
    if (cursor === null) return false;
    if (cursor === 'overtaken') return true;
    const found = await ledgers.read(ledgerId, cursor.nextSeq, rangeEventsMax, pageCharsMax);
    const entries = this.#answered(ledgerId, found);
    const last = entries.at(-1);
    const isCertain = last === undefined || this.#isCertain(ledgerId, last.seq);
    if (!isCertain) this.askBarrier(ledgerId);
    if (last === undefined || !isCertain) {
      this.#cursors.set(ledgerId, cursor);
      return false;
    }
    // After the read, so that every subscription made before one of these events was answered is included.
    await this.#parts.upToDate();
    // A node that stops may not know these subscriptions: its cursor must not pass their events.
    if (this.#stopped) return false;
    const events = entries.map((entry) => this.#readable(ledgerId, entry)).filter((event) => event !== null);
    await this.#learn(ledgerId, events);
    const subscriptions = index.of(ledgerId);
    const range = { ledgerId, fromSeq: cursor.nextSeq, throughSeq: last.seq, events };
    const woken = await fanOut(this.#fanOutParts, range, subscriptions);
    if (woken === null) return false;
    const nextSeq = last.seq + 1;
    // The records are durable, so this node may send before the cursor has moved: after a crash they are found.
    this.#cursors.set(ledgerId, { version: cursor.version, nextSeq });
    this.#recorded.set(ledgerId, nextSeq);
    const elsewhere: string[] = [];
    for (const subscriptionId of woken) {
      if (ownsShardOf(subscriptionId)) queued(subscriptionId);
      else elsewhere.push(subscriptionId);
    }
    try {
      const moved = await cursors.move(ledgerId, cursor, nextSeq);
      if (moved === null) {
        this.#cursors.delete(ledgerId);
        this.#recorded.delete(ledgerId);
      } else this.#cursors.set(ledgerId, moved);
    } finally {
      // Other nodes read the cursor, so they are notified after it has moved, or after a failed move, which may have
      // landed.
      for (const subscriptionId of elsewhere) queued(subscriptionId);
    }
    return true;
  }

  /**
   * The entries without those still being written: a cursor past such an entry would hide it from a subscription
   * created before it is answered. Called after the read, so that no write begins in between.
   */
  #answered(ledgerId: string, entries: readonly StoredEntry[]): readonly StoredEntry[] {
    const underWayFrom = this.#parts.underWayFrom(ledgerId);
    if (underWayFrom === null || (entries.at(-1)?.seq ?? -1) < underWayFrom) return entries;
    this.#heldBack.add(ledgerId);
    return entries.filter(({ seq }) => seq < underWayFrom);
  }

  #askNextBarrier(): void {
    for (const ledgerId of this.#waitingForBarrier) {
      if (this.#askingBarrier.size >= barriersAtOnce) return;
      this.#waitingForBarrier.delete(ledgerId);
      this.#askingBarrier.add(ledgerId);
      void this.#askActor(ledgerId);
    }
  }

  async #askActor(ledgerId: string): Promise<void> {
    const { limiter, clock, log, ownsShardOf, readBarrier } = this.#parts;
    try {
      await limiter.take(barrierCostMs);
      if (ownsShardOf(ledgerId) && !this.#stopped) {
        this.#certain.set(ledgerId, await readBarrier(ledgerId));
        this.wake(ledgerId);
      }
    } catch (error) {
      log.warn({ err: error, ledger_id: ledgerId }, 'a read barrier of a ledger failed; it is tried again');
      clock.after(retryMs, () => this.askBarrier(ledgerId));
    }
    this.#askingBarrier.delete(ledgerId);
    this.#askNextBarrier();
  }

  /**
   * Whether the events of the ledger up to `seq` are certain. Those that this node has answered are. The log may also
   * show events of another node, or of this one before it started, whose projections are not stored yet: access to them
   * cannot be checked. And a write with an unknown outcome may still land. A read barrier settles both.
   */
  #isCertain(ledgerId: string, seq: number): boolean {
    return Math.max(this.#parts.newestAnswered(ledgerId) ?? -1, this.#certain.get(ledgerId) ?? -1) >= seq;
  }

  /** The stored cursor, so that ranges begin at the same places again. 'overtaken': another node has stored one. */
  async #begin(ledgerId: string): Promise<Cursor | null | 'overtaken'> {
    const { cursor, isStored } = await this.#start(ledgerId);
    if (cursor === null || isStored) return cursor;
    this.#recorded.delete(ledgerId);
    return (await this.#parts.cursors.move(ledgerId, cursor, cursor.nextSeq)) ?? 'overtaken';
  }

  #start(ledgerId: string): Promise<CursorStart> {
    return cursorToStartAt(this.#parts, ledgerId, this.#parts.index.of(ledgerId), rangeEventsMax);
  }

  /** Learns new readers from the events themselves: another node may have written them. */
  async #learn(ledgerId: string, events: readonly LedgerEvent[]): Promise<void> {
    const lettingIn = events.filter(
      ({ eventType }) => eventType === 'GENESIS' || delegationOfType(eventType)?.isGrant === true,
    );
    if (lettingIn.length === 0) return;
    const facts = await this.#parts.facts(ledgerId);
    const entries = lettingIn.map((event) => ({ projections: changesBy(event, facts) }));
    this.#parts.index.learn(ledgerId, entries);
  }

  /** Reads of the ledger report a row that cannot be parsed; there is nothing to send. */
  #readable(ledgerId: string, entry: StoredEntry): LedgerEvent | null {
    try {
      return parseRow(entry.row);
    } catch (error) {
      if (!(error instanceof CorruptRow)) throw error;
      this.#parts.log.error(
        { ledger_id: ledgerId, seq: entry.seq },
        'a stored event cannot be read and is not delivered',
      );
      return null;
    }
  }
}
