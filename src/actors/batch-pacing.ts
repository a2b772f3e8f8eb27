import { batchEventsMax, batchTickMs } from './bounds.ts';
import type { Clock } from './clock.ts';

/** When ledgers wait before their batches. */
export interface BatchPace {
  /**
   * Where so few run or wait none waits: so few commits are not what keeps a node busy. And as many run at most of those that need nothing
   * more, until they have waited for as long as they may.
   */
  readonly freeMax: number;
  /** No batch waits for longer. */
  readonly waitMaxMs: number;
  /** A group that nothing has joined for so long needs no more. */
  readonly quietMs: number;
  /** Half of what waits may be one commit, so many at most; less than twice `batchEventsMax` is bounded by that. */
  readonly crowdedMax: number;
  /** Whether the node has more to do than it can. */
  readonly isSaturated: () => boolean;
}

/** They never do. */
export const unpaced: BatchPace = {
  freeMax: 0,
  waitMaxMs: 0,
  quietMs: 0,
  crowdedMax: batchEventsMax,
  isSaturated: () => false,
};

/** What a ledger says of its batch: that more commands may come, that it has what it waits for, or that somebody waits for it to end. */
export type BatchNeed = 'more' | 'nothing' | 'haste';

interface Waiting {
  readonly need: () => BatchNeed;
  readonly go: () => void;
  /** When it came: milliseconds since 1970, and ticks, which go on where that clock is put back. */
  readonly at: number;
  readonly tick: number;
}

/**
 * Has the ledgers of a node wait before their batches while the node has more to do than it can. Commands then wait in the mailboxes of their
 * ledgers, where they become larger groups, instead of in front of the node: a commit of ten events costs little more than one of five.
 * While there is time to spare nobody begins to wait, however slow the store is; and nobody waits for longer than the pace says, whatever
 * became of the batches before.
 *
 * Where a batch ends, one begins that needs nothing more. All others that may begin do so with a tick, several together, so that what they
 * ask the store for goes out in one piece.
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

  /** Begins a batch; undefined: at once. Each that has begun must `end`. While it waits, `need` is asked again with each tick. */
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

  /** Ends a batch. */
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

  /** `others`: batches that run or wait, beside this one. */
  #mayBegin(need: BatchNeed, others: number, waitedMs: number): boolean {
    const { freeMax, waitMaxMs, isSaturated } = this.#pace;
    if (need === 'haste' || waitedMs >= waitMaxMs || others < freeMax) return true;
    // Full groups too: a store that is given more of them at once than it can write answers none in time.
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
