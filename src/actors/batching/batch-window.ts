import type { Clock } from '../../runtime/clock/clock.ts';
import { busyLedgersMin } from '../bounds.ts';

export interface BatchLimits {
  readonly maxEvents: number;
  /** A single event may be larger. */
  readonly maxBytes: number;
  /** How long a batch that is not full waits for more commands under load. 0: it never waits. */
  readonly maxDelayMs: number;
}

/** Counts of the batches of a node's ledgers. */
export interface BatchCounts {
  /** Batches that the store has confirmed since the node started. */
  readonly stood: number;
  /** Batches that run now. */
  readonly running: number;
}

export interface BatchDelay {
  readonly over: Promise<void>;
  /** Ends the delay early. */
  end(): void;
}

/**
 * What a batch may hold, and when it starts. The commands that wait while a ledger's write is in flight are its next
 * batch. It starts when the write ends, or under load up to `maxDelayMs` later: a commit of ten events costs little
 * more than a commit of five. The ledgers of a node share one window.
 */
export class BatchWindow implements BatchCounts {
  readonly maxEvents: number;
  readonly maxBytes: number;
  readonly #maxDelayMs: number;
  readonly #clock: Clock;
  readonly #isSaturated: () => boolean;
  #delayed = 0;
  #running = 0;
  #stood = 0;

  constructor(clock: Clock, { maxEvents, maxBytes, maxDelayMs }: BatchLimits, isSaturated = () => false) {
    this.maxEvents = maxEvents;
    this.maxBytes = maxBytes;
    this.#maxDelayMs = maxDelayMs;
    this.#clock = clock;
    this.#isSaturated = isSaturated;
  }

  get running(): number {
    return this.#running;
  }

  get stood(): number {
    return this.#stood;
  }

  /** The delay of a batch that is not full. null: it starts at once. */
  delay(): BatchDelay | null {
    if (this.#maxDelayMs === 0 || this.#running + this.#delayed < busyLedgersMin || !this.#isSaturated()) return null;
    this.#delayed += 1;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(this.#maxDelayMs, resolve);
    const over = promise.then(() => {
      cancel();
      this.#delayed -= 1;
    });
    return { over, end: resolve };
  }

  /** A batch starts. It must call `end`. */
  begin(): void {
    this.#running += 1;
  }

  end(): void {
    this.#running -= 1;
  }

  /** The store has confirmed a batch. */
  confirmed(): void {
    this.#stood += 1;
  }
}
