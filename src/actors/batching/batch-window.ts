import type { Clock } from '../../runtime/clock/clock.ts';

export interface BatchLimits {
  readonly maxEvents: number;
  /** A single event may be larger. */
  readonly maxBytes: number;
  /** No batch of a saturated node waits while fewer than this run or wait. */
  readonly freeBatches: number;
  /** How long a batch that is not full waits at most. 0: it never waits. */
  readonly maxDelayMs: number;
  /** Whether the batch that has waited longest starts when another ends. If not, each waits for more commands. */
  readonly startsWhenOneEnds: boolean;
}

export interface BatchCounts {
  /** Batches that the store has confirmed since the node started. */
  readonly confirmed: number;
  readonly running: number;
}

export interface BatchDelay {
  readonly over: Promise<void>;
  end(): void;
}

/**
 * What a batch may hold, and when it starts. The commands that wait while a ledger's write is in flight are its next
 * batch. It starts when the write ends, or on a saturated node up to `maxDelayMs` later: a commit of ten events costs
 * little more than a commit of five. The ledgers of a node share one window.
 */
export class BatchWindow implements BatchCounts {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly #limits: BatchLimits;
  readonly #clock: Clock;
  readonly #isSaturated: () => boolean;
  /** The delayed batches, oldest first. */
  readonly #delayed = new Set<BatchDelay>();
  #running = 0;
  #confirmed = 0;

  constructor(clock: Clock, limits: BatchLimits, isSaturated = () => false) {
    this.maxEvents = limits.maxEvents;
    this.maxBytes = limits.maxBytes;
    this.#limits = limits;
    this.#clock = clock;
    this.#isSaturated = isSaturated;
  }

  get running(): number {
    return this.#running;
  }

  get confirmed(): number {
    return this.#confirmed;
  }

  /** The delay of a batch that is not full. null: it starts at once. */
  delay(): BatchDelay | null {
    const { freeBatches, maxDelayMs } = this.#limits;
    const isFree = this.#running + this.#delayed.size < freeBatches;
    if (maxDelayMs === 0 || isFree || !this.#isSaturated()) return null;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const end = () => {
      cancel();
      this.#delayed.delete(delay);
      resolve();
    };
    const cancel = this.#clock.after(maxDelayMs, end);
    const delay = { over, end };
    this.#delayed.add(delay);
    return delay;
  }

  /** A batch starts. It must call `end`. */
  begin(): void {
    this.#running += 1;
  }

  end(): void {
    this.#running -= 1;
    if (!this.#limits.startsWhenOneEnds || this.#running >= this.#limits.freeBatches) return;
    const [oldest] = this.#delayed;
    oldest?.end();
  }

  /** The store has confirmed a batch. */
  countConfirmed(): void {
    this.#confirmed += 1;
  }
}
