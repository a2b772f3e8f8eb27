import type { Claim, Head } from '../ledger-store.ts';

/** Ledgers counted at most: while Cassandra does not take projections it hardly takes batches either. */
const ledgersMax = 10_000;

interface LaggingBatch {
  /** The newest claim of this process on the ledger. */
  claim: Claim;
  readonly last: Head;
  readonly events: number;
  isGivenUp: boolean;
}

/**
 * Events that a conditional batch of this process has written and whose projections it does not know to be written: those that it
 * projects now, and those that it gave up on. The latter are completed by whoever claims the ledger next, here or elsewhere.
 *
 * Invariant: a ledger has at most one batch here, since the next one is written after the projections of the one before.
 */
export class ProjectionLag {
  readonly #byLedger = new Map<string, LaggingBatch>();
  #events = 0;
  #looking = false;

  get events(): number {
    return this.#events;
  }

  /** A batch under `claim` was written, through `last`. */
  written(claim: Claim, last: Head, events: number): void {
    this.projected(claim.ledgerId);
    if (this.#byLedger.size === ledgersMax) return;
    this.#byLedger.set(claim.ledgerId, { claim, last, events, isGivenUp: false });
    this.#events += events;
  }

  /** All of a ledger is projected. */
  projected(ledgerId: string): void {
    const batch = this.#byLedger.get(ledgerId);
    if (batch === undefined) return;
    this.#byLedger.delete(ledgerId);
    this.#events -= batch.events;
  }

  /** The batch of a ledger waits for the next claim. */
  givenUp(ledgerId: string): void {
    const batch = this.#byLedger.get(ledgerId);
    if (batch !== undefined) batch.isGivenUp = true;
  }

  /** This process took the ledger anew, and is about to project what is not. */
  claimed(claim: Claim): void {
    const batch = this.#byLedger.get(claim.ledgerId);
    if (batch !== undefined) batch.claim = claim;
  }

  /**
   * Forgets batches whose ledger somebody else has taken since, who projects them before anything else. What cannot be looked at
   * now stays counted. Never rejects; does nothing while a look is under way.
   */
  async look(stands: (claim: Claim, head: Head) => Promise<boolean>): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    try {
      for (const [ledgerId, batch] of [...this.#byLedger]) {
        if (!batch.isGivenUp) continue;
        const { claim, last } = batch;
        const isTaken = !(await stands(claim, last));
        if (isTaken && this.#byLedger.get(ledgerId) === batch && batch.claim === claim) this.projected(ledgerId);
      }
    } catch {
      // The store does not answer: the next look finds out.
    } finally {
      this.#looking = false;
    }
  }
}
