import type { BatchCounts } from '../../src/actors/batching/batch-window.ts';

/** Far longer than a batch takes, and shorter than the time that a silent peer is given (`budgetMs`). */
const standstillMs = 1_000;

/**
 * A clock for the time that counts against peers. It stops while this process does not run, and while this node's own
 * batches stand still: some run, and the store has confirmed none for a second. Then a peer that gets nothing done may
 * not be at fault.
 */
export class CountedTime {
  readonly #batches: () => BatchCounts;
  #confirmed = 0;
  #leftOutMs = 0;
  #lookedAt: number;
  #movedAt: number;

  /** `now`: monotonic, ms. */
  constructor(batches: () => BatchCounts, now: number) {
    this.#batches = batches;
    this.#lookedAt = now;
    this.#movedAt = now;
  }

  /**
   * Returns `now` (monotonic, ms) minus the time that does not count. Call it many times a second: a gap of a second
   * between two calls means that the process did not run.
   */
  at(now: number): number {
    const sinceMs = now - this.#lookedAt;
    this.#lookedAt = now;
    const { confirmed, running } = this.#batches();
    if (confirmed !== this.#confirmed || running === 0) this.#movedAt = now;
    this.#confirmed = confirmed;
    if (sinceMs >= standstillMs || now - this.#movedAt >= standstillMs) this.#leftOutMs += sinceMs;
    return now - this.#leftOutMs;
  }
}
