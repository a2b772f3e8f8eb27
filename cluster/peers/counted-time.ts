import type { BatchCounts } from '../../src/actors/batch-counts.ts';

/** Far longer than a turn takes, and shorter than a silent peer is given. */
const standstillMs = 1_000;

/**
 * The time that counts against peers. Left out is time in which this node's own batches stand still, from the second second on: some are under way, and the store has confirmed
 * none since. As long as it does not answer this node, that a peer gets nothing carried out says nothing about the peer. Left out is also time in which this process
 * did not run.
 */
export class CountedTime {
  readonly #batches: () => BatchCounts;
  #stood = 0;
  #leftOutMs = 0;
  #lookedAt: number;
  #movedAt: number;

  /** `now` is monotonic, in milliseconds, here and below. */
  constructor(batches: () => BatchCounts, now: number) {
    this.#batches = batches;
    this.#lookedAt = now;
    this.#movedAt = now;
  }

  /** `now` without all that is left out by then. Whoever waits by this time asks many times a second: from longer gaps it is seen that the process did not run. */
  at(now: number): number {
    const sinceMs = now - this.#lookedAt;
    this.#lookedAt = now;
    const { stood, running } = this.#batches();
    if (stood !== this.#stood || running === 0) this.#movedAt = now;
    this.#stood = stood;
    if (sinceMs >= standstillMs || now - this.#movedAt >= standstillMs) this.#leftOutMs += sinceMs;
    return now - this.#leftOutMs;
  }
}
