import type { Clock } from '../../runtime/clock/clock.ts';

/** How many batches use a known size before growth is measured again. */
const batchesBetweenLooks = 16;

/**
 * Decides whether more commands may join the batch that a ledger waits for. Callers that all wait for their answers
 * send no more: if two batches in a row stop growing at the same size, the next ones are complete at that size.
 */
export class GroupGrowth {
  readonly #clock: Clock;
  readonly #quietMs: number;
  #size = 0;
  #grownAt = 0;
  /**
   * The size at which this batch stopped growing, and the size for the batch before. null: still growing, or not known.
   */
  #stoppedAt: number | null = null;
  #stoppedBefore: number | null = null;
  /** How many batches are still complete at that size. */
  #batchesLeft = 0;

  /** `quietMs`: a batch that no command has joined for this long has stopped growing. */
  constructor(clock: Clock, quietMs: number) {
    this.#clock = clock;
    this.#quietMs = quietMs;
  }

  /** The ledger's next batch begins to wait. */
  start(): void {
    if (this.#stoppedAt !== null) {
      this.#batchesLeft = this.#stoppedAt === this.#stoppedBefore ? batchesBetweenLooks : 0;
      this.#stoppedBefore = this.#stoppedAt;
    } else if (this.#batchesLeft > 0) this.#batchesLeft -= 1;
    else this.#stoppedBefore = null;
    this.#stoppedAt = null;
    this.#size = 0;
    this.#grownAt = this.#clock.now();
  }

  /** Whether a batch of `size` commands is complete, so that no more are waited for. */
  isWhole(size: number): boolean {
    const now = this.#clock.now();
    if (size > this.#size || now < this.#grownAt) {
      this.#size = size;
      this.#grownAt = now;
    }
    if (this.#batchesLeft > 0 && size >= (this.#stoppedBefore ?? size)) return true;
    if (now - this.#grownAt < this.#quietMs) return false;
    this.#stoppedAt = size;
    return true;
  }
}
