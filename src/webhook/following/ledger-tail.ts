import type { Clock } from '../../actors/clock.ts';
import type { LedgerEvent } from '../../domain/event.ts';
import { RecentMap } from '../../domain/recent-map.ts';
import { CorruptRow, parseRow } from '../../domain/row.ts';
import type { Log } from '../../log.ts';
import type { StoredEntry } from '../../store/ledger-store.ts';
import type { Pace } from '../pacing/pace.ts';
import type { Cursor, Cursors } from './cursor-record.ts';
import { type CursorStart, cursorToStartAt } from './cursor-start.ts';
import { type FanOutParts, fanOut } from './fan-out.ts';
import type { LedgerBarriers } from './ledger-barriers.ts';
import { changesBy } from './read-spans.ts';
import type { SubscriptionIndex } from './subscription-index.ts';

/** Events looked at before the cursor moves: at 256 KiB each they are 16 MiB. */
const rangeEventsMax = 64;
/** Ledgers that are fanned out at once; more only wait for the same disk. */
const ledgersAtOnce = 4;
/** Cursors kept in memory. */
const cursorsMax = 20_000;
/** After a failure of the store. */
const retryMs = 1_000;
/** Main thread, measured: reading and parsing a row. */
const eventCostMs = 0.03;

export interface FollowerParts extends Omit<FanOutParts, 'now'> {
  readonly cursors: Cursors;
  readonly watches: SubscriptionIndex;
  readonly certainty: Pick<LedgerBarriers, 'reaches' | 'ask'>;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether this node works for the ledger or subscription of this id. */
  ownsShardOf(id: string): boolean;
  /** The first seq of the ledger that this node is writing and has not answered; null: there is none. */
  underWayFrom(ledgerId: string): number | null;
  /** Resolves when memory holds every subscription whose making was answered before. */
  upToDate(): Promise<void>;
  /** New deliveries of the subscription may be sent. */
  queued(subscriptionId: string): void;
}

/**
 * Follows the logs of watched ledgers: the log is the outbox. Of each range of events it records the deliveries to every subscription whose
 * owner may read them, and then moves the ledger's cursor. After a crash the range begins at the same place, where what was recorded of it is
 * found, so nothing is missed and nothing is doubled.
 */
export class LedgerTail {
  readonly #parts: FollowerParts;
  readonly #fanOutParts: FanOutParts;
  readonly #waiting = new Set<string>();
  readonly #running = new Set<string>();
  /** Ledgers that have events which the log shows and nobody has answered yet. */
  readonly #heldBack = new Set<string>();
  readonly #cursors = new RecentMap<string, Cursor>(cursorsMax);
  #isOpen = false;
  #stopped = false;
  #idle = Promise.withResolvers<void>();

  constructor(parts: FollowerParts) {
    this.#parts = parts;
    this.#fanOutParts = { ...parts, now: () => parts.clock.now() };
    this.#idle.resolve();
  }

  /**
   * Begins. Not before every subscription in force is known: a cursor that moves on for some of them would leave the others' events
   * behind.
   */
  open(): void {
    this.#isOpen = true;
    this.#startWaiting();
  }

  /** Looks whether the ledger has events behind its cursor. */
  wake(ledgerId: string): void {
    if (this.#stopped || !this.#parts.ownsShardOf(ledgerId)) return;
    this.#waiting.add(ledgerId);
    this.#startWaiting();
  }

  /** Follows the ledger, unless that is under way, if events stand behind its cursor that nobody here was told of. */
  async look(ledgerId: string): Promise<void> {
    const isFollowed = [this.#waiting, this.#running, this.#heldBack].some((ledgers) => ledgers.has(ledgerId));
    if (isFollowed || !this.#isOpen) return;
    const cursor = this.#cursors.get(ledgerId) ?? (await this.#start(ledgerId)).cursor;
    const head = cursor === null ? null : await this.#parts.ledgers.head(ledgerId);
    if (cursor !== null && head !== null && head.seq >= cursor.nextSeq) this.wake(ledgerId);
  }

  /** What was being written of the ledger is answered now, or never will be. */
  release(ledgerId: string): void {
    if (this.#heldBack.delete(ledgerId)) this.wake(ledgerId);
  }

  /** The first seq of the ledger that may lack delivery records; what stands behind it is not sent yet, so that order holds. */
  async position(ledgerId: string): Promise<number> {
    const known = this.#cursors.get(ledgerId) ?? (await this.#parts.cursors.get(ledgerId));
    return known?.nextSeq ?? 0;
  }

  /** Follows a ledger no more: somebody else does. */
  forget(ledgerId: string): void {
    this.#waiting.delete(ledgerId);
    this.#heldBack.delete(ledgerId);
    this.#cursors.delete(ledgerId);
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#waiting.clear();
    await this.#idle.promise;
  }

  #startWaiting(): void {
    if (!this.#isOpen) return;
    for (const ledgerId of this.#waiting) {
      if (this.#running.size >= ledgersAtOnce) return;
      if (this.#running.has(ledgerId)) continue;
      if (this.#running.size === 0) this.#idle = Promise.withResolvers<void>();
      this.#waiting.delete(ledgerId);
      this.#running.add(ledgerId);
      void this.#run(ledgerId);
    }
  }

  async #run(ledgerId: string): Promise<void> {
    try {
      if (await this.#advance(ledgerId)) this.#waiting.add(ledgerId);
    } catch (error) {
      this.#cursors.delete(ledgerId);
      this.#parts.log.warn({ err: error, ledger_id: ledgerId }, 'fanning out failed; it is tried again');
      this.#parts.clock.after(retryMs, () => this.wake(ledgerId));
    }
    this.#running.delete(ledgerId);
    // Whoever follows it now moves its cursor: the one that is known here would be an old one when the ledger comes back.
    if (!this.#parts.ownsShardOf(ledgerId)) this.forget(ledgerId);
    if (this.#stopped) this.#waiting.clear();
    this.#startWaiting();
    if (this.#running.size === 0) this.#idle.resolve();
  }

  /** Fans out one batch. True if there may be more. */
  async #advance(ledgerId: string): Promise<boolean> {
    const { ledgers, watches, certainty, pace, cursors, ownsShardOf, queued } = this.#parts;
    await pace.take(rangeEventsMax * eventCostMs);
    if (!watches.isWatched(ledgerId)) {
      this.#cursors.delete(ledgerId);
      // A cursor lost too early would send again what happened since the subscription was made; one left behind does no harm.
      if (watches.isComplete) await cursors.remove(ledgerId);
      return false;
    }
    const cursor = this.#cursors.get(ledgerId) ?? (await this.#begin(ledgerId));
    if (cursor === null) return false;
    if (cursor === 'overtaken') return true;
    const entries = this.#answered(ledgerId, await ledgers.read(ledgerId, cursor.nextSeq, rangeEventsMax));
    const last = entries.at(-1);
    const isCertain = last === undefined || certainty.reaches(ledgerId, last.seq);
    if (!isCertain) certainty.ask(ledgerId);
    if (last === undefined || !isCertain) {
      this.#cursors.set(ledgerId, cursor);
      return false;
    }
    // Asked after the reading: whoever subscribed, on whichever node, before one of these events was answered is among them.
    await this.#parts.upToDate();
    const events = entries.map((entry) => this.#readable(ledgerId, entry)).filter((event) => event !== null);
    await this.#learn(ledgerId, events);
    const subscriptions = watches.of(ledgerId);
    const range = { ledgerId, fromSeq: cursor.nextSeq, throughSeq: last.seq, events };
    const woken = await fanOut(this.#fanOutParts, range, subscriptions);
    if (woken === null) return false;
    const nextSeq = last.seq + 1;
    // The records are durable, so sending here need not wait until the cursor is: after a crash they are found to be there.
    this.#cursors.set(ledgerId, { version: cursor.version, nextSeq });
    const elsewhere: string[] = [];
    for (const subscriptionId of woken) {
      if (ownsShardOf(subscriptionId)) queued(subscriptionId);
      else elsewhere.push(subscriptionId);
    }
    try {
      const moved = await cursors.move(ledgerId, cursor, nextSeq);
      if (moved === null) this.#cursors.delete(ledgerId);
      else this.#cursors.set(ledgerId, moved);
    } finally {
      // Other nodes read the cursor: told any earlier they would pass over what it has not passed. A move that failed may have landed, and
      // then nothing of this range is looked at again.
      for (const subscriptionId of elsewhere) queued(subscriptionId);
    }
    return true;
  }

  /**
   * The entries without those that are still being written: the log may show them long before they are answered, and a cursor that had
   * passed them by then would leave whoever subscribes in between without them. Asked after the reading, so that no write begins between.
   */
  #answered(ledgerId: string, entries: readonly StoredEntry[]): readonly StoredEntry[] {
    const underWayFrom = this.#parts.underWayFrom(ledgerId);
    if (underWayFrom === null || (entries.at(-1)?.seq ?? -1) < underWayFrom) return entries;
    this.#heldBack.add(ledgerId);
    return entries.filter(({ seq }) => seq < underWayFrom);
  }

  /**
   * Where to begin, and durably so: after a crash the same ranges begin at the same places. null: nowhere yet; 'overtaken': somebody else has
   * just put the cursor somewhere.
   */
  async #begin(ledgerId: string): Promise<Cursor | null | 'overtaken'> {
    const { cursor, isStored } = await this.#start(ledgerId);
    if (cursor === null || isStored) return cursor;
    return (await this.#parts.cursors.move(ledgerId, cursor, cursor.nextSeq)) ?? 'overtaken';
  }

  #start(ledgerId: string): Promise<CursorStart> {
    return cursorToStartAt(this.#parts, ledgerId, this.#parts.watches.of(ledgerId), rangeEventsMax);
  }

  /** A node that wrote in the place of this one has told nobody here whom it has let in: the events themselves say so. */
  async #learn(ledgerId: string, events: readonly LedgerEvent[]): Promise<void> {
    const lettingIn = events.filter(
      ({ eventType }) => eventType === 'GENESIS' || eventType.endsWith('_DELEGATION_GRANTED'),
    );
    if (lettingIn.length === 0) return;
    const facts = await this.#parts.facts(ledgerId);
    const entries = lettingIn.map((event) => ({ projections: changesBy(event, facts) }));
    this.#parts.watches.learn(ledgerId, entries);
  }

  /** A row that is no event any more is passed over: reads of the ledger tell of it, and it is nothing to send. */
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
