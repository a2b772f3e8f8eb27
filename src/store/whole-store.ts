import type { Head } from './ledger-store.ts';
import type { RecordWrite } from './record-store.ts';
import type { UnreadableRecord } from './unreadable-record.ts';

/** A record with all that a put needs, except for the version that the put replaces. */
export type WholeRecord = Omit<RecordWrite, 'replaces'>;

/** All data of a store that nothing writes to meanwhile, for copying and checking it. */
export interface WholeStore {
  /** Returns the numbers of ledgers with events, of events and of records. */
  size(): { readonly ledgers: number; readonly events: number; readonly records: number };
  /** Yields each ledger that has an event, with its head, in the same order each time. Throws UnreadableRecord. */
  ledgers(): Iterable<{ readonly ledgerId: string; readonly head: Head }>;
  /** Yields each record, including expired ones. Throws UnreadableRecord. */
  records(): Iterable<WholeRecord>;
  /** Like `records`, but yields the error in place of a record that cannot be read. */
  recordsOrDamage(): Iterable<WholeRecord | UnreadableRecord>;
  /** Like `ledgers`, but yields the error in place of a ledger that cannot be read. */
  ledgersOrDamage(): Iterable<{ readonly ledgerId: string; readonly head: Head } | UnreadableRecord>;
  /** Yields each look-up: a text that identifies it, and the id of the record that it points to. */
  lookups(): Iterable<{ readonly text: string; readonly id: string }>;
  /** Returns the texts of the look-ups that must point to a record, in the form of `lookups`. */
  lookupsOf(record: WholeRecord): readonly string[];
}
