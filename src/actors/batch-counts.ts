/** How the turns of a node's ledgers get on. */
export interface BatchCounts {
  /** That the store has confirmed, ever: grows for as long as the node gets commands carried out. */
  readonly stood: number;
  /** Under way. */
  readonly running: number;
}

/** Of a node that has not begun. */
export const noBatches: BatchCounts = { stood: 0, running: 0 };
