import type { Clock } from '../../actors/clock.ts';
import { LedgerError } from '../../domain/errors.ts';
import type { AccessEvent, AccessLog } from '../../store/access-log.ts';
import { StoreStopped } from '../../store/store-stopped.ts';
import { AccessEvents } from './access-events.ts';
import type { AccessRecord } from './access-record.ts';

/** A record, or those of one call whose ledgers are still looked up: they keep their place. One that rejects is lost, and nothing else. */
export type AccessEntry = AccessRecord | Promise<readonly AccessRecord[]>;

/** Keeps access records. Never rejects; a promise is for the answer to wait for, and undefined says that it need not. */
export type AccessHistory = (entry: AccessEntry) => Promise<void> | undefined;

/** How long calls are kept. */
export const accessKeptMs = 90 * 24 * 60 * 60 * 1000;

/** When records are written, and how many may wait for it. */
export const historyBounds = Object.freeze({
  /** What a killed process loses at most, and what a history lags behind on other nodes. */
  flushAfterMs: 100,
  /** Written at once when so many wait, and written together at most: some 350 KB, never more than 1 MB. */
  flushRecords: 1_000,
  /** From here on answers wait for room: a store that does not keep up slows its callers down. */
  waitRecords: 10_000,
  /** Look-ups under way at once behind answers; from here on an answer waits for its own. */
  lookUpsMax: 256,
  /** Some 35 MB, and never more than 100 MB, whatever callers send. Beyond it records are lost, and it is said how many: it takes callers that no longer wait for answers. */
  heldRecordsMax: 100_000,
  /** After a failed write; then twice as long each time. */
  retryFirstMs: 100,
  retryMaxMs: 10_000,
  /** How long a stopping node goes on trying. */
  lastFlushMs: 5_000,
});

/** What a history has to say to the operator. */
export interface HistoryReport {
  /** Writing has begun to fail and is tried again; `held` records wait. */
  failing(error: unknown, held: number): void;
  /** Writing works again. */
  recovered(): void;
  /** `cause`: the records could not be made, or were such that no store takes them; null: the store did not take any for too long. */
  lost(records: number, cause: unknown): void;
}

export interface AccessQueueParts {
  readonly log: AccessLog;
  readonly clock: Clock;
  readonly random: (lengthBytes: number) => Uint8Array;
  readonly report: HistoryReport;
}

/**
 * Access records on their way to the store, written behind the answers, in the order of the answers. Invariants: one write is under way at
 * a time, of the oldest records; a record leaves the queue when it was written, or counted as lost. Records whose ledgers are still looked up
 * count as one until they are written.
 */
export class AccessQueue implements AsyncDisposable {
  readonly #parts: AccessQueueParts;
  readonly #events: AccessEvents;
  #waiting: AccessEntry[] = [];
  #writing = 0;
  #lookUps = 0;
  #noted = 0;
  #finished = 0;
  /** Lost and not told yet, and lost in all. */
  #lost = 0;
  #lostInAll = 0;
  #running: Promise<void> | null = null;
  #failing = false;
  #closed = false;
  #givenUp = false;
  /** The store takes nothing any more: records are lost at once, and no answer waits for room. */
  #hasStoreStopped = false;
  #stopTimer: (() => void) | null = null;
  #endPause: (() => void) | null = null;
  #room: PromiseWithResolvers<void> | null = null;
  #flushes: { readonly upTo: number; readonly resolve: () => void }[] = [];

  constructor(parts: AccessQueueParts) {
    this.#parts = parts;
    this.#events = new AccessEvents(parts.random);
  }

  /** Records that are not in the store yet. */
  get held(): number {
    return this.#waiting.length + this.#writing;
  }

  /** Records that were lost since the queue was made. */
  get lost(): number {
    return this.#lostInAll;
  }

  /** Takes a record. A promise: the queue is full, the answer has to wait until there is room. */
  note(given: AccessEntry): Promise<void> | undefined {
    if (this.#closed || this.#hasStoreStopped || this.held >= historyBounds.heldRecordsMax) {
      if (given instanceof Promise) given.catch(() => {});
      this.#lose(1);
      if (this.#givenUp) this.#tellLost();
      return undefined;
    }
    const entry = given instanceof Promise ? this.#lookUp(given) : given;
    this.#waiting.push(entry);
    this.#noted += 1;
    if (this.#running === null) {
      if (this.#waiting.length >= historyBounds.flushRecords) this.#start();
      else this.#stopTimer ??= this.#parts.clock.after(historyBounds.flushAfterMs, () => this.#start());
    }
    if (this.held >= historyBounds.waitRecords) {
      this.#room ??= Promise.withResolvers();
      return this.#room.promise;
    }
    // Too many look-ups are under way: the answer has to wait for its own.
    return entry instanceof Promise && this.#lookUps > historyBounds.lookUpsMax ? entry.then(() => {}) : undefined;
  }

  /** What is found, and nothing where the look-up fails, which is a fault of this service: it must not hold up what comes behind it. */
  async #lookUp(entry: Promise<readonly AccessRecord[]>): Promise<readonly AccessRecord[]> {
    this.#lookUps += 1;
    try {
      return await entry;
    } catch (error) {
      // What a stopping node gave up was counted then.
      if (!this.#givenUp) this.#loseBroken(1, error);
      return [];
    } finally {
      this.#lookUps -= 1;
    }
  }

  /** Resolves when what was noted before is in the store, or when the store has failed to take it. */
  flush(): Promise<void> {
    if (this.held === 0 || this.#failing || this.#closed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#flushes.push({ upTo: this.#noted, resolve });
      if (this.#running === null) this.#start();
    });
  }

  /** Takes no more records, and writes those it has: what cannot be written in 5 s is lost, and said to be. */
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

  /** Writes batches as long as there is a reason not to wait for more. */
  async #run(): Promise<void> {
    do {
      const entries = this.#waiting.splice(0, historyBounds.flushRecords);
      this.#writing = entries.length;
      await this.#write(this.#events.of(await recordsOf(entries)));
      if (this.#givenUp) return;
      this.#writing = 0;
      this.#finished += entries.length;
      this.#release(this.#finished);
    } while (this.#waiting.length >= historyBounds.flushRecords || (this.#waiting.length > 0 && this.#isAwaited));
    this.#running = null;
    if (this.#waiting.length > 0)
      this.#stopTimer = this.#parts.clock.after(historyBounds.flushAfterMs, () => this.#start());
  }

  get #isAwaited(): boolean {
    return this.#closed || this.#flushes.length > 0;
  }

  /** Tries until the batch is written. The same events each time: a batch that was written after all stands there once. */
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
          // Events that no store takes would hold up all that come behind them.
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

  /** Wakes who waits for the records up to a number, and, where there is room, who waits for that. */
  #release(upTo: number, room = true): void {
    const ready = this.#flushes.filter((flush) => flush.upTo <= upTo);
    this.#flushes = this.#flushes.filter((flush) => flush.upTo > upTo);
    for (const { resolve } of ready) resolve();
    if (!room || (this.held >= historyBounds.waitRecords && !this.#closed)) return;
    this.#room?.resolve();
    this.#room = null;
  }

  /** Lost for what they are, which is told at once. */
  #loseBroken(records: number, cause: unknown): void {
    this.#lostInAll += records;
    this.#parts.report.lost(records, cause);
  }

  #lose(records: number): void {
    this.#lost += records;
    this.#lostInAll += records;
  }

  /** Told when writing works again, or the node stops: until then there may be more. */
  #tellLost(): void {
    if (this.#lost > 0) this.#parts.report.lost(this.#lost, null);
    this.#lost = 0;
  }
}

async function recordsOf(entries: readonly AccessEntry[]): Promise<AccessRecord[]> {
  const records: AccessRecord[] = [];
  for (const entry of entries) {
    if (entry instanceof Promise) records.push(...(await entry));
    else records.push(entry);
  }
  return records;
}
