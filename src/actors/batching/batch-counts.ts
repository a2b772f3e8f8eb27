/** Counts of the batches of a node's ledgers. */
export interface BatchCounts {
  /** Batches that the store has confirmed since the node started. */
  readonly stood: number;
  /** Batches that run now. */
  readonly running: number;
}

/** The counts of a node that has just started. */
export const noBatches: BatchCounts = { stood: 0, running: 0 };
