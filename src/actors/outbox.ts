import type { LedgerEntry } from '../store/ledger-store.ts';

/**
 * Is told of every batch that this node has written, before any of its commands is answered. It must not throw, and waits for nothing: it
 * only learns where to look. What it misses by a crash it finds in the log.
 */
export interface Outbox {
  committed(ledgerId: string, entries: readonly LedgerEntry[]): void;
}
