import {
  backoffBatches,
  backoffFactorKept,
  backoffFactorMax,
  backoffMaxMs,
  claimBackoffMinMs,
  claimRacesBeforeBackoff,
} from '../bounds.ts';

/**
 * How long an actor waits before it claims a ledger again that another node has fenced: about as long as the other
 * node's batch takes. Each further loss in a row makes the wait shorter. Without the wait, nodes that cannot reach each
 * other would fence each other before any of them has written (docs/architecture.md, Two owners).
 */
export class FenceBackoff {
  #lostRaces = 0;
  /** Duration of the last batch that had to claim first, ms. */
  #claimedBatchMs = 0;
  /** How many times as long as ours the batches of other nodes seem to take. 0 until one of them was cut short. */
  #factor = 0;
  /** The seq of the newest event when the claim was lost. null while the claim is held. */
  #fencedAt: number | null = null;

  /** A batch that had to claim first has ended, with any result. */
  batchTook(ms: number): void {
    this.#claimedBatchMs = ms;
  }

  /** A batch stands. */
  stood(): void {
    this.#lostRaces = 0;
  }

  /**
   * The claim was lost. `seq`: the newest event known. `chance`: in [0, 1), for jitter. Returns how long to wait before
   * the next claim, ms.
   */
  fenced(seq: number, chance: number): number {
    this.#fencedAt = seq;
    this.#lostRaces += 1;
    const batchMs = Math.min(backoffMaxMs, backoffBatches * this.#factor * this.#claimedBatchMs) / this.#lostRaces;
    const leastMs = this.#lostRaces > claimRacesBeforeBackoff ? claimBackoffMinMs : 0;
    return Math.ceil(Math.max(batchMs, leastMs) * (1 + chance));
  }

  /**
   * The ledger is claimed again, and ends in `seq`. If the other node wrote nothing, it needs longer than it was given.
   */
  claimed(seq: number): void {
    if (this.#fencedAt === null) return;
    const isWritten = seq > this.#fencedAt;
    this.#factor = isWritten
      ? this.#factor * backoffFactorKept
      : Math.min(backoffFactorMax, Math.max(1, this.#factor * 2));
    this.#fencedAt = null;
  }
}
