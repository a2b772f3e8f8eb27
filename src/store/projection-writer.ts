import type { LedgerEntry } from './ledger-store.ts';

/** Projections of one event. */
export type EventProjections = Pick<LedgerEntry, 'seq' | 'projections'>;

/** Writes projections that a scrub finds missing. A serving node writes projections with its appends instead. */
export interface ProjectionWriter {
  /**
   * Writes projections of events that are in the ledger's log, in the form that an append writes. Existing and newer
   * values stay as they are, so it may be repeated, and may run while nodes write. Throws LedgerError `unavailable`:
   * then some of the projections may have been written.
   */
  write(ledgerId: string, events: readonly EventProjections[]): Promise<void>;
}
