import { LedgerError } from '../../domain/errors.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import { FairShare } from '../../runtime/limits/fair-share.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { accessRecordBytes, queueBounds } from '../../runtime/limits/queue-bounds.ts';
import type { AccessEvent, AccessLog } from '../../store/access-log.ts';
import { StoreStopped } from '../../store/ledger-store.ts';
import { AccessEvents } from './access-events.ts';
import type { AccessRecord } from './access-record.ts';

/** A record, or a promise of the records of one call whose ledgers are still looked up. It keeps its place. */
export type AccessEntry = AccessRecord | Promise<readonly AccessRecord[]>;

/**
 * Keeps the access records of an actor. Returns undefined, or a promise that the answer, or the call's next record, has
 * to wait for. The promise never rejects.
 */
export type AccessHistory = (entry: AccessEntry, actorId: string) => Promise<void> | undefined;

export const historyBounds = Object.freeze({
  /** ms. A killed process loses the records of this time at most. */
  flushAfterMs: 100,
  /** Records of one write at most: some 350 KB, never more than 1 MB. A write starts at once when this many wait. */
  flushRecords: 1_000,
  /** Look-ups under way at once after their answers were given. Above it, an answer waits for its own look-up. */
  lookUpsMax: 256,
  /** Pause after a failed write, ms. It doubles with each failure up to `retryMaxMs`. */
  retryFirstMs: 100,
  retryMaxMs: 10_000,
  /** How long a node that stops keeps trying to write, ms. */
  lastFlushMs: 5_000,
});

export interface HistoryReport {
  /** Writes have begun to fail and are retried. `held` records wait. */
  failing(error: unknown, held: number): void;
  recovered(): void;
  /** `cause`: why records could not be made or stored. null if the store accepted none for too long. */
  lost(records: number, cause: unknown): void;
}

interface AccessQueueParts {
  readonly log: AccessLog;
  /** Counts the records, and bounds them: see queueBounds. */
  readonly memory: MemoryBudget;
  readonly clock: Clock;
  readonly random: (lengthBytes: number) => Uint8Array;
  readonly report: HistoryReport;
}

/** The records of a call whose ledgers are still looked up. */
interface LookUp {
  readonly actorId: string;
  readonly found: Promise<readonly AccessRecord[]>;
}

/**
 * The access records that are not stored yet, in the order of the answers. They are written in batches after the
 * answers were given. Room is shared by actor, so that an actor that makes many records waits, or loses them, itself.
 *
 * Invariants:
 * - One write is in flight, with the oldest records.
 * - A record leaves the queue only when it is written, or counted as lost.
 * - An entry whose ledgers are still looked up counts as one record until it is written.
 */
export class AccessQueue implements AsyncDisposable {
  readonly #parts: AccessQueueParts;
  readonly #events: AccessEvents;
  readonly #recordsMax: number;
  #waiting: (AccessRecord | LookUp)[] = [];
  /** Entries by actor, those that are being written included. */
  readonly #held: FairShare<string>;
  #lookUps = 0;
  #noted = 0;
  #finished = 0;
  /** Lost records that are not reported yet, and all lost records. */
  #lost = 0;
  #lostInAll = 0;
  #running: Promise<void> | null = null;
  #failing = false;
  #closed = false;
  #givenUp = false;
  /** The store has stopped: records are lost at once, and no answer waits for room. */
  #hasStoreStopped = false;
  #stopTimer: (() => void) | null = null;
  #endPause: (() => void) | null = null;
  /** Of actors whose answers wait. */
  readonly #rooms = new Map<string, PromiseWithResolvers<void>>();
  #flushes: { readonly upTo: number; readonly resolve: () => void }[] = [];

  constructor(parts: AccessQueueParts) {
    this.#parts = parts;
    this.#events = new AccessEvents(parts.random);
    const { accessRecordsMax, accessRecordsWait } = queueBounds(parts.memory.maxBytes);
    this.#recordsMax = accessRecordsMax;
    this.#held = new FairShare(accessRecordsWait);
  }

  get held(): number {
    return this.#held.total;
  }

  get lost(): number {
    return this.#lostInAll;
  }

  /**
   * Adds an entry. The entry is lost if the queue is closed, if the actor has no room (`accessRecordsMax`), or if the
   * store has stopped. Returns a promise if the answer has to wait: many entries wait and the actor has its part of
   * them, or too many look-ups are under way.
   */
  note(given: AccessEntry, actorId: string): Promise<void> | undefined {
    const hasRoom = this.#held.heldBy(actorId) < this.#recordsMax - this.held;
    if (this.#closed || this.#hasStoreStopped || !hasRoom) {
      if (given instanceof Promise) given.catch(() => {});
      this.#lose(1);
      if (this.#givenUp) this.#tellLost();
      return undefined;
    }
    const entry = given instanceof Promise ? { actorId, found: this.#lookUp(given) } : given;
    this.#waiting.push(entry);
    this.#held.add(actorId, 1);
    this.#parts.memory.add('queue', accessRecordBytes);
    this.#noted += 1;
    if (this.#running === null) {
      if (this.#waiting.length >= historyBounds.flushRecords) this.#start();
      else this.#stopTimer ??= this.#parts.clock.after(historyBounds.flushAfterMs, () => this.#start());
    }
    if (this.#mustWait(actorId)) return this.#roomOf(actorId);
    return 'found' in entry && this.#lookUps > historyBounds.lookUpsMax ? entry.found.then(() => {}) : undefined;
  }

  #mustWait(actorId: string): boolean {
    const { total, max, part } = this.#held;
    return total >= max && this.#held.heldBy(actorId) >= part;
  }

  #roomOf(actorId: string): Promise<void> {
    const room = this.#rooms.get(actorId) ?? Promise.withResolvers<void>();
    this.#rooms.set(actorId, room);
    return room.promise;
  }

  /** A failed look-up is a fault of this service: its records alone are lost. */
  async #lookUp(entry: Promise<readonly AccessRecord[]>): Promise<readonly AccessRecord[]> {
    this.#lookUps += 1;
    try {
      return await entry;
    } catch (error) {
      // If the node has given up, it has already counted this entry as lost.
      if (!this.#givenUp) this.#loseBroken(1, error);
      return [];
    } finally {
      this.#lookUps -= 1;
    }
  }

  /** Resolves when all earlier entries are in the store, or when a write has failed. Never rejects. */
  flush(): Promise<void> {
    if (this.held === 0 || this.#failing || this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#flushes.push({ upTo: this.#noted, resolve });
      if (this.#running === null) this.#start();
    });
  }

  /**
   * Accepts no more records and writes those that wait. Records that cannot be written within `lastFlushMs` are lost
   * and reported.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#running === null && this.#waiting.length > 0) this.#start();
    this.#endPause?.();
    this.#stopTimer?.();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const onTime = this.#parts.clock.after(historyBounds.lastFlushMs, resolve);
    await Promise.race([this.#running, late]);
    onTime();
    this.#givenUp = true;
    this.#endPause?.();
    this.#lose(this.held);
    this.#tellLost();
    this.#release(Number.POSITIVE_INFINITY);
  }

  #start(): void {
    this.#stopTimer?.();
    this.#stopTimer = null;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    do {
      const entries = this.#waiting.splice(0, historyBounds.flushRecords);
      await this.#write(this.#events.of(await recordsOf(entries)));
      if (this.#givenUp) return;
      for (const { actorId } of entries) {
        this.#held.add(actorId, -1);
        this.#parts.memory.release('queue', accessRecordBytes);
      }
      this.#finished += entries.length;
      this.#release(this.#finished);
    } while (this.#waiting.length >= (this.#isAwaited ? 1 : historyBounds.flushRecords));
    this.#running = null;
    if (this.#waiting.length > 0)
      this.#stopTimer = this.#parts.clock.after(historyBounds.flushAfterMs, () => this.#start());
  }

  get #isAwaited(): boolean {
    return this.#closed || this.#flushes.length > 0;
  }

  /**
   * Retries until the batch is written. Each attempt has the same event ids, so a batch that an earlier attempt wrote
   * after all is stored once.
   */
  async #write(batch: readonly AccessEvent[]): Promise<void> {
    for (let pauseMs = historyBounds.retryFirstMs; batch.length > 0 && !this.#givenUp; pauseMs *= 2) {
      try {
        await this.#parts.log.append(batch);
        if (this.#failing) this.#parts.report.recovered();
        this.#failing = false;
        this.#tellLost();
        return;
      } catch (error) {
        if (error instanceof StoreStopped) {
          this.#hasStoreStopped = true;
          this.#lose(batch.length);
          return;
        }
        if (!(error instanceof LedgerError)) {
          // No retry: events that no store accepts would hold up all later ones.
          this.#loseBroken(batch.length, error);
          return;
        }
        if (!this.#failing) this.#parts.report.failing(error, this.held);
        this.#failing = true;
        this.#release(Number.POSITIVE_INFINITY, false);
        await this.#pause(this.#closed ? historyBounds.retryFirstMs : Math.min(pauseMs, historyBounds.retryMaxMs));
      }
    }
  }

  async #pause(pauseMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(pauseMs, resolve);
    this.#endPause = resolve;
    await promise;
    this.#endPause = null;
    cancel();
  }

  /** Resolves the flushes that wait for entries up to a number, and the answers that wait for room if there is any. */
  #release(upTo: number, room = true): void {
    for (const { resolve } of this.#flushes.filter((flush) => flush.upTo <= upTo)) resolve();
    this.#flushes = this.#flushes.filter((flush) => flush.upTo > upTo);
    if (!room) return;
    for (const [actorId, { resolve }] of this.#rooms) {
      if (this.#mustWait(actorId) && !this.#closed) continue;
      this.#rooms.delete(actorId);
      resolve();
    }
  }

  /** Records that could not be made or stored are reported at once. */
  #loseBroken(records: number, cause: unknown): void {
    this.#lostInAll += records;
    this.#parts.report.lost(records, cause);
  }

  #lose(records: number): void {
    this.#lost += records;
    this.#lostInAll += records;
  }

  /** Reports lost records in one sum, when writes succeed again or the node stops: until then more may be lost. */
  #tellLost(): void {
    if (this.#lost > 0) this.#parts.report.lost(this.#lost, null);
    this.#lost = 0;
  }
}

async function recordsOf(entries: readonly (AccessRecord | LookUp)[]): Promise<AccessRecord[]> {
  const records: AccessRecord[] = [];
  for (const entry of entries) {
    if ('found' in entry) records.push(...(await entry.found));
    else records.push(entry);
  }
  return records;
}
