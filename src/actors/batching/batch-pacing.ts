import type { Clock } from '../../runtime/clock/clock.ts';
import { batchEventsMax, batchTickMs } from '../bounds.ts';

/** When batches wait before they start. */
export interface BatchPace {
  /**
   * If fewer batches than this run or wait, none waits: so few commits do not saturate a node. It also bounds how many
   * batches run at once of those that need no more commands, until they have waited for `waitMaxMs`.
   */
  readonly freeMax: number;
  /** The longest wait of a batch. */
  readonly waitMaxMs: number;
  /** A batch that no command has joined for this long needs no more. */
  readonly quietMs: number;
  /**
   * If more than twice `batchEventsMax` commands wait for a ledger, half of them may be one commit, but at most this
   * many.
   */
  readonly crowdedMax: number;
  /** Whether the node has more work than it can do. */
  readonly isSaturated: () => boolean;
}

/** No pacing: a batch starts as soon as the last one ends. */
export const unpaced: BatchPace = {
  freeMax: 0,
  waitMaxMs: 0,
  quietMs: 0,
  crowdedMax: batchEventsMax,
  isSaturated: () => false,
};

/**
 * What a ledger says of its next batch. 'more': more commands may come. 'nothing': it has all that it waits for.
 * 'haste': a caller waits for the batch to end.
 */
export type BatchNeed = 'more' | 'nothing' | 'haste';

interface Waiting {
  readonly need: () => BatchNeed;
  readonly go: () => void;
  /** When it began to wait: milliseconds since 1970, and in ticks, which also count if the clock is set back. */
  readonly at: number;
  readonly tick: number;
}

/**
 * Delays the batches of a node's ledgers while the node is saturated. Commands then wait in the queues of their
 * ledgers, where they form larger batches, instead of in front of the node: a commit of ten events costs little more
 * than a commit of five. While the node is not saturated no batch begins to wait, even if the store is slow. No batch
 * waits for longer than `waitMaxMs`, whatever happened to earlier batches.
 *
 * When a batch ends, one that needs no more commands may start. All other batches start on a tick, several together, so
 * that their requests to the store are sent together.
 */
export class BatchPacing {
  readonly #clock: Clock;
  readonly #pace: BatchPace;
  #running = 0;
  /** Oldest first. */
  #waiting: Waiting[] = [];
  #tick = 0;
  #isTicking = false;

  constructor(clock: Clock, pace: BatchPace) {
    this.#clock = clock;
    this.#pace = pace;
  }

  /**
   * Starts a batch. Returns undefined if it may start at once, otherwise a promise of its start. Each started batch
   * must call `end`. While the batch waits, `need` is called on each tick.
   */
  begin(need: () => BatchNeed): Promise<void> | undefined {
    if (this.#mayBegin(need(), this.#running + this.#waiting.length, 0)) {
      this.#running += 1;
      return undefined;
    }
    return new Promise((go) => {
      this.#waiting.push({ need, go, at: this.#clock.now(), tick: this.#tick });
      this.#startTicking();
    });
  }

  /** Ends a started batch. */
  end(): void {
    this.#running -= 1;
    if (this.#running >= this.#pace.freeMax) return;
    const next = this.#waiting.findIndex(({ need }) => need() === 'nothing');
    if (next >= 0) for (const batch of this.#waiting.splice(next, 1)) this.#go(batch);
  }

  #go(batch: Waiting): void {
    this.#running += 1;
    batch.go();
  }

  /** `others`: the batches that run or wait, without this one. */
  #mayBegin(need: BatchNeed, others: number, waitedMs: number): boolean {
    const { freeMax, waitMaxMs, isSaturated } = this.#pace;
    if (need === 'haste' || waitedMs >= waitMaxMs || others < freeMax) return true;
    // Full batches are limited too: a store that gets more of them at once than it can write answers none in time.
    if (need === 'nothing' && this.#running < freeMax) return true;
    return !isSaturated();
  }

  #goOn(): void {
    const asked = this.#waiting;
    const now = this.#clock.now();
    this.#waiting = [];
    for (const [at, batch] of asked.entries()) {
      const others = this.#running + this.#waiting.length + asked.length - at - 1;
      const waitedMs = Math.max(now - batch.at, (this.#tick - batch.tick) * batchTickMs);
      if (this.#mayBegin(batch.need(), others, waitedMs)) this.#go(batch);
      else this.#waiting.push(batch);
    }
  }

  #startTicking(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#clock.after(batchTickMs, () => {
      this.#isTicking = false;
      this.#tick += 1;
      this.#goOn();
      if (this.#waiting.length > 0) this.#startTicking();
    });
  }
}
