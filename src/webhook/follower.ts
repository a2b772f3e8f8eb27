import type { Clock } from '../actors/clock.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { CorruptRow, parseRow } from '../domain/row.ts';
import { isoTime } from '../domain/time.ts';
import type { Log } from '../log.ts';
import type { Deliveries } from '../service/delivery-record.ts';
import type { SubscriptionRecord } from '../service/subscription-record.ts';
import type { LedgerStore, StoredEntry } from '../store/ledger-store.ts';
import type { Cursor, Cursors } from './cursor-record.ts';
import { cursorToStartAt } from './cursor-start.ts';
import { isFor, newDelivery } from './event-delivery.ts';
import type { Pace } from './pace.ts';
import type { Watches } from './watches.ts';

/** Events looked at before the cursor moves: at 256 KiB each they are 16 MiB. */
const batchEvents = 64;
/** Ledgers that are fanned out at once; more only wait for the same disk. */
const ledgersAtOnce = 4;
/** Cursors kept in memory. */
const cursorsMax = 20_000;
/** After a failure of the store. */
const retryMs = 1_000;
/** Main thread, measured: reading and parsing a row, and writing a record with its look-ups. */
const eventCostMs = 0.03;
const recordCostMs = 0.06;

export interface FollowerParts {
  readonly ledgers: LedgerStore;
  readonly cursors: Cursors;
  readonly deliveries: Deliveries;
  readonly watches: Watches;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether this node follows the ledger. */
  mine(ledgerId: string): boolean;
  mayRead(actorId: string, ledgerId: string, masterId: string | null): Promise<boolean>;
  /** New deliveries of the subscription may be sent. */
  queued(subscriptionId: string): void;
  fannedOut(deliveries: number): void;
}

/**
 * Follows the logs of watched ledgers: the log is the outbox. For each event it writes a delivery record a subscription whose owner may
 * read it, and then moves the ledger's cursor. What was written before a crash is written again under the same ids, so nothing is missed
 * and nothing is doubled.
 */
export class Follower {
  readonly #parts: FollowerParts;
  readonly #waiting = new Set<string>();
  readonly #running = new Set<string>();
  readonly #cursors = new Map<string, Cursor>();
  #isOpen = false;
  #stopped = false;
  #idle = Promise.withResolvers<void>();

  constructor(parts: FollowerParts) {
    this.#parts = parts;
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
    if (this.#stopped || !this.#parts.mine(ledgerId)) return;
    this.#waiting.add(ledgerId);
    this.#startWaiting();
  }

  /** The first seq of the ledger that may lack delivery records; what stands behind it is not sent yet, so that order holds. */
  async position(ledgerId: string): Promise<number> {
    const known = this.#cursors.get(ledgerId) ?? (await this.#parts.cursors.get(ledgerId));
    return known?.nextSeq ?? 0;
  }

  /** Follows a ledger no more: somebody else does. */
  forget(ledgerId: string): void {
    this.#waiting.delete(ledgerId);
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
    if (this.#stopped) this.#waiting.clear();
    this.#startWaiting();
    if (this.#running.size === 0) this.#idle.resolve();
  }

  /** Fans out one batch. True if there may be more. */
  async #advance(ledgerId: string): Promise<boolean> {
    const { ledgers, watches, pace, cursors } = this.#parts;
    await pace.take(batchEvents * eventCostMs);
    if (!watches.isWatched(ledgerId)) {
      this.#cursors.delete(ledgerId);
      // A cursor lost too early would send again what happened since the subscription was made; one left behind does no harm.
      if (watches.isComplete) await cursors.remove(ledgerId);
      return false;
    }
    const cursor =
      this.#cursors.get(ledgerId) ?? (await cursorToStartAt(ledgers, cursors, ledgerId, watches.of(ledgerId)));
    if (cursor === null) return false;
    const entries = await ledgers.read(ledgerId, cursor.nextSeq, batchEvents);
    const last = entries.at(-1);
    if (last === undefined) {
      this.#keep(ledgerId, cursor);
      return false;
    }
    // Asked after the reading: whoever subscribed before one of these events was answered is among them.
    const subscriptions = watches.of(ledgerId);
    const woken = await this.#fanOut(ledgerId, entries, subscriptions);
    const nextSeq = last.seq + 1;
    // The records are durable, so sending need not wait until the cursor is: after a crash they are found to be there.
    this.#keep(ledgerId, { version: cursor.version, nextSeq });
    for (const subscriptionId of woken) this.#parts.queued(subscriptionId);
    const moved = await cursors.move(ledgerId, cursor, nextSeq);
    if (moved === null) this.#cursors.delete(ledgerId);
    else this.#keep(ledgerId, moved);
    return true;
  }

  async #fanOut(
    ledgerId: string,
    entries: readonly StoredEntry[],
    subscriptions: readonly SubscriptionRecord[],
  ): Promise<Set<string>> {
    const { clock, deliveries, pace } = this.#parts;
    const now = isoTime(clock.now());
    const mayRead = this.#accessOf(ledgerId);
    const woken = new Set<string>();
    let writes: Promise<boolean>[] = [];
    for (const entry of entries) {
      const event = this.#readable(ledgerId, entry);
      if (event === null) continue;
      for (const subscription of subscriptions) {
        if (!isFor(subscription, event) || !(await mayRead(subscription.actorId, event.master?.id ?? null))) continue;
        writes.push(deliveries.create(newDelivery(subscription, event, now)));
        woken.add(subscription.id);
      }
      // One event may have a thousand subscriptions: what is under way has a bound, and what it costs is paid for.
      if (writes.length >= batchEvents || entry === entries.at(-1)) {
        this.#parts.fannedOut((await Promise.all(writes)).filter((written) => written).length);
        const costMs = writes.length * recordCostMs;
        writes = [];
        await pace.take(costMs);
      }
    }
    return woken;
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

  /** Who may read, asked once a batch for each actor and master. */
  #accessOf(ledgerId: string): (actorId: string, masterId: string | null) => boolean | Promise<boolean> {
    const known = new Map<string, boolean>();
    return (actorId, masterId) => {
      const key = `${actorId}|${masterId ?? ''}`;
      const answer = known.get(key);
      if (answer !== undefined) return answer;
      return this.#parts.mayRead(actorId, ledgerId, masterId).then((allowed) => {
        known.set(key, allowed);
        return allowed;
      });
    };
  }

  #keep(ledgerId: string, cursor: Cursor): void {
    this.#cursors.delete(ledgerId);
    if (this.#cursors.size >= cursorsMax) {
      const oldest = this.#cursors.keys().next();
      if (!oldest.done) this.#cursors.delete(oldest.value);
    }
    this.#cursors.set(ledgerId, cursor);
  }
}
