import type { LedgerEntry } from '../store/ledger-store.ts';

/**
 * Is told of every batch that this node has written, before any of its commands is answered. It must not throw, and waits for nothing: it
 * only learns where to look. What it misses by a crash it finds in the log.
 */
export interface CommitListener {
  /** The store is asked to write from this seq on: until `settled`, none of what the log shows from there on is answered. */
  writing(ledgerId: string, fromSeq: number): void;
  /** That write is over, whatever came of it; where it stands, `committed` follows. */
  settled(ledgerId: string): void;
  committed(ledgerId: string, entries: readonly LedgerEntry[]): void;
  /** Nobody can say whether these stand in the log; if not, they may until `claimed`. */
  unsettled(ledgerId: string, entries: readonly LedgerEntry[]): void;
  /** The ledger was claimed: no earlier write can land any more, and one that has may not have been told. */
  claimed(ledgerId: string): void;
}
