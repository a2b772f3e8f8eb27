import {
  claimBackoffMinMs,
  claimRacesBeforeBackoff,
  patienceKept,
  patienceMax,
  yieldMaxMs,
  yieldTurns,
} from './bounds.ts';

/**
 * How long an owner leaves its ledger to one that fenced it: as long as a turn seems to take, where turns were cut short before. Who has just
 * lost the claim waits longest, who lost it again and again hardly at all: or owners that cannot reach each other would fence each other before
 * any of them has written (docs/architecture.md, Two owners).
 */
export class FenceBackoff {
  #lostRaces = 0;
  /** How long the last turn took that began with a claim. */
  #claimedTurnMs = 0;
  /** How much longer than this one others seem to need; 0 before one of them was cut short. */
  #patience = 0;
  /** The newest event's seq when the claim was lost; null while that is not so. */
  #fencedAt: number | null = null;

  /** A turn that began with a claim is over, whatever came of it. */
  turnTook(ms: number): void {
    this.#claimedTurnMs = ms;
  }

  /** A turn stands. */
  stood(): void {
    this.#lostRaces = 0;
  }

  /** The claim was lost; `seq` is the newest event known, `chance` is in [0, 1). Answers how long to wait before the next one, in ms. */
  fenced(seq: number, chance: number): number {
    this.#fencedAt = seq;
    this.#lostRaces += 1;
    const turnMs = Math.min(yieldMaxMs, yieldTurns * this.#patience * this.#claimedTurnMs) / this.#lostRaces;
    const leastMs = this.#lostRaces > claimRacesBeforeBackoff ? claimBackoffMinMs : 0;
    return Math.ceil(Math.max(turnMs, leastMs) * (1 + chance));
  }

  /** The ledger is claimed again; `seq` is its newest event. Whoever came between and wrote nothing needs longer than it was given. */
  claimed(seq: number): void {
    if (this.#fencedAt === null) return;
    const isWritten = seq > this.#fencedAt;
    this.#patience = isWritten ? this.#patience * patienceKept : Math.min(patienceMax, Math.max(1, this.#patience * 2));
    this.#fencedAt = null;
  }
}
