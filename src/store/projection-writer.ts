import type { LedgerEntry } from './ledger-store.ts';

/** Projections of one event. */
export type EventProjections = Pick<LedgerEntry, 'seq' | 'projections'>;

/** Writes what is found missing beside a log, for a scrub. Who serves writes it with its appends. */
export interface ProjectionWriter {
  /**
   * Writes projections of events that stand in the log of a ledger, as whoever appended them did. What is there already stays the same,
   * and nothing that is newer is replaced, so that it may be done again, and while nodes write. LedgerError `unavailable`: some may
   * have been written.
   */
  write(ledgerId: string, events: readonly EventProjections[]): Promise<void>;
}
