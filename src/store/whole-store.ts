import type { Head } from './ledger-store.ts';
import type { RecordWrite } from './record-store.ts';
import { UnreadableRecord } from './unreadable-record.ts';

/** A record with all that a put needs, except for the version that the put replaces. */
export type WholeRecord = Omit<RecordWrite, 'replaces'>;

export interface WholeLedger {
  readonly ledgerId: string;
  readonly head: Head;
}

/** All data of a store that nothing writes to meanwhile, for copying and checking it. */
export interface WholeStore {
  /** Returns the numbers of ledgers with events, of events and of records. */
  size(): { readonly ledgers: number; readonly events: number; readonly records: number };
  /** Yields each ledger that has an event, in the same order each time, and an error in place of a damaged one. */
  ledgers(): Iterable<WholeLedger | UnreadableRecord>;
  /** Yields each record, including expired ones, and an error in place of a damaged one. */
  records(): Iterable<WholeRecord | UnreadableRecord>;
  /** Yields each look-up: a text that identifies it, and the id of the record that it points to. */
  lookups(): Iterable<{ readonly text: string; readonly id: string }>;
  /** Returns the texts of the look-ups that must point to a record, in the form of `lookups`. */
  lookupsOf(record: WholeRecord): readonly string[];
}

/** Throws the first UnreadableRecord. */
export function* undamaged<T extends object>(found: Iterable<T | UnreadableRecord>): Iterable<T> {
  for (const one of found) {
    if (one instanceof UnreadableRecord) throw one;
    yield one;
  }
}
