import type { LedgerEvent } from '../../domain/event/event.ts';
import type { LedgerEntry } from '../../store/ledger-store.ts';

/** An entry as an actor makes it, so that listeners need not parse its row. */
export interface EventEntry extends LedgerEntry {
  readonly event: LedgerEvent;
}

/**
 * Learns of every batch of this node before its commands are answered. Implementations must not throw or block. What a
 * listener misses in a crash, it finds in the log.
 */
export interface CommitListener {
  /** A write begins at `fromSeq`. Until `settled`, no event that the log shows from there on is answered. */
  writing(ledgerId: string, fromSeq: number): void;
  settled(ledgerId: string): void;
  committed(ledgerId: string, entries: readonly EventEntry[]): void;
  /** These entries may be in the log, or may still land until `claimed`. */
  batchInDoubt(ledgerId: string, entries: readonly EventEntry[]): void;
  /** The ledger was claimed: no earlier write can land any more. One that landed may have had no `committed`. */
  claimed(ledgerId: string): void;
}

/** A listener that calls several, in this order. Each may leave out what it does not need. */
export function combineListeners(...listeners: readonly Partial<CommitListener>[]): CommitListener {
  return {
    writing: (ledgerId, fromSeq) => {
      for (const one of listeners) one.writing?.(ledgerId, fromSeq);
    },
    settled: (ledgerId) => {
      for (const one of listeners) one.settled?.(ledgerId);
    },
    committed: (ledgerId, entries) => {
      for (const one of listeners) one.committed?.(ledgerId, entries);
    },
    batchInDoubt: (ledgerId, entries) => {
      for (const one of listeners) one.batchInDoubt?.(ledgerId, entries);
    },
    claimed: (ledgerId) => {
      for (const one of listeners) one.claimed?.(ledgerId);
    },
  };
}
