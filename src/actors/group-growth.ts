import type { Clock } from './clock.ts';

/** Turns for which groups count as whole at the size at which they stop growing, before it is looked again whether more would come. */
const batchesBetweenLooks = 16;

/**
 * Sees whether the group of commands that a ledger's batch waits for still grows. Callers that all wait for their answers send no more: where
 * the groups of two batches in a row stop growing at the same size, the next ones are whole at that size.
 */
export class GroupGrowth {
  readonly #clock: Clock;
  readonly #quietMs: number;
  #size = 0;
  #grownAt = 0;
  /** Where this batch's group has stopped growing, and where the group before did; null: it has not. */
  #stoppedAt: number | null = null;
  #stoppedBefore: number | null = null;
  /** Whose groups are whole at that size. */
  #batchesLeft = 0;

  /** `quietMs`: a group that nothing has joined for so long does not grow any more. */
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

  /** Whether no more are waited for, now that there are so many. */
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
