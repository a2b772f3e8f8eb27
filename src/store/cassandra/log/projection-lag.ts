import type { Claim, Head } from '../../ledger-store.ts';

/** Most ledgers counted. More are unlikely: while Cassandra refuses projections, it refuses most batches too. */
const ledgersMax = 10_000;

interface LaggingBatch {
  claim: Claim;
  readonly last: Head;
  readonly events: number;
  isGivenUp: boolean;
}

/**
 * Counts events that this process has written without knowing their projections to be written: they are being written
 * now, or failed. The next claim of the ledger, by any node, completes the latter.
 *
 * Invariant: a ledger has at most one batch here, because the next batch is written only after these projections.
 */
export class ProjectionLag {
  readonly #byLedger = new Map<string, LaggingBatch>();
  #events = 0;
  #looking = false;

  get events(): number {
    return this.#events;
  }

  written(claim: Claim, last: Head, events: number): void {
    this.projected(claim.ledgerId);
    if (this.#byLedger.size === ledgersMax) return;
    this.#byLedger.set(claim.ledgerId, { claim, last, events, isGivenUp: false });
    this.#events += events;
  }

  projected(ledgerId: string): void {
    const batch = this.#byLedger.get(ledgerId);
    if (batch === undefined) return;
    this.#byLedger.delete(ledgerId);
    this.#events -= batch.events;
  }

  givenUp(ledgerId: string): void {
    const batch = this.#byLedger.get(ledgerId);
    if (batch !== undefined) batch.isGivenUp = true;
  }

  /** This process has claimed the ledger again, and is about to complete the projections. */
  claimed(claim: Claim): void {
    const batch = this.#byLedger.get(claim.ledgerId);
    if (batch !== undefined) batch.claim = claim;
  }

  /**
   * Removes batches whose ledger another node has claimed since, because a claim completes projections first. Batches
   * that cannot be checked now stay counted. Never rejects. Does nothing while another check runs.
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
      // The store does not answer. The next call checks again.
    } finally {
      this.#looking = false;
    }
  }
}
