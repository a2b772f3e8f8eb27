import type { LedgerEntry } from '../../store/ledger-store.ts';

/**
 * Learns of every batch that this node writes, before any of its commands is answered. Implementations must not throw
 * or block. What a listener misses in a crash, it finds in the log.
 */
export interface CommitListener {
  /** A write begins at `fromSeq`. Until `settled`, no event that the log shows from there on is answered. */
  writing(ledgerId: string, fromSeq: number): void;
  /** The write has ended. If it stands, `committed` follows. */
  settled(ledgerId: string): void;
  committed(ledgerId: string, entries: readonly LedgerEntry[]): void;
  /** Whether these entries are in the log is unknown. They may still land until `claimed`. */
  unsettled(ledgerId: string, entries: readonly LedgerEntry[]): void;
  /** The ledger was claimed: no earlier write can land any more. One that landed may have had no `committed`. */
  claimed(ledgerId: string): void;
}
