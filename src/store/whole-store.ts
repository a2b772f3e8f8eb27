import type { Head } from './ledger-store.ts';
import type { RecordWrite } from './record-store.ts';
import type { UnreadableRecord } from './unreadable-record.ts';

/** A record with all that a put of it takes, but what it replaces. */
export type WholeRecord = Omit<RecordWrite, 'replaces'>;

/** Everything in a store that nobody writes to meanwhile, for taking it elsewhere. */
export interface WholeStore {
  /** How much there is: ledgers, their events, records. */
  size(): { readonly ledgers: number; readonly events: number; readonly records: number };
  /** Every ledger that has an event, with its newest one; in the same order each time. */
  ledgers(): Iterable<{ readonly ledgerId: string; readonly head: Head }>;
  /** Every record, those that have run out too. Throws UnreadableRecord. */
  records(): Iterable<WholeRecord>;
  /** The same, and in the place of what cannot be read what is wrong with it. */
  recordsOrDamage(): Iterable<WholeRecord | UnreadableRecord>;
  ledgersOrDamage(): Iterable<{ readonly ledgerId: string; readonly head: Head } | UnreadableRecord>;
  /** Every look-up: a text of its own, and the id of the record that it leads to. */
  lookups(): Iterable<{ readonly text: string; readonly id: string }>;
  /** The texts of the look-ups that lead to a record. */
  lookupsOf(record: WholeRecord): readonly string[];
}
