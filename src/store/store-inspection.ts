import type { Projection } from '../domain/projection.ts';
import type { Head } from './ledger-store.ts';
import type { StoredRecord } from './record-store.ts';

/** An event that stands under a scope, as a reader of the scope finds it. */
export interface ScopeEntry {
  readonly scope: string;
  readonly seq: number;
}

export interface StoredMark {
  readonly id: string;
  readonly seq: number;
  readonly fingerprint: string;
}

export interface StoredCell {
  readonly key: string;
  readonly version: number;
  readonly value: string;
}

export interface StoredLine {
  readonly list: string;
  readonly order: string;
  readonly value: string;
}

/** A part of a log that stands behind the ledger's end, where nothing leads to it before the ledger has grown that far. */
export interface StrayBucket {
  readonly ledgerId: string;
  readonly bucket: number;
  /** Of the first event that it holds, else of the head that it names. */
  readonly seq: number;
  /** Where the ledger ends; seq -1: it has no event. */
  readonly end: { readonly bucket: number; readonly seq: number };
}

/** A part of a log that is full: nothing is ever added to it. */
export interface FullBucket {
  readonly bucket: number;
  /** Of the last event that stands in it. */
  readonly lastSeq: number;
  /** Where it ends as the store says, by which readers go on to the next one. null: the store does not say. */
  readonly head: Head | null;
}

/** A row that is not what the service writes there. */
export interface DamagedRow {
  readonly table: string;
  /** The columns of its key, in words. */
  readonly key: string;
  /** null: of no ledger in particular. */
  readonly ledgerId: string | null;
  /** null: of no event in particular. */
  readonly seq: number | null;
  /** In words, what is wrong with it. */
  readonly detail: string;
}

/** The newest batch of a ledger, as the store keeps it until the next one. */
export interface NewestBatch {
  /** Every event up to this seq has its projections; -1: none. Those behind may have theirs still to come. */
  readonly projectedSeq: number;
  /** What follows from the events behind, as it is kept with them; null: it cannot be read. */
  readonly pending: readonly Projection[] | null;
}

/** Something found on a walk through the store, and how much of the walk lies behind: 0 to 1. */
export interface Walked<T> {
  readonly found: T;
  readonly share: number;
}

/**
 * A store as a scrub looks at it: what stands there, whether or not anything leads to it. Reading alone; nobody who serves is held up.
 * What is written meanwhile may be found or not. Every method may throw LedgerError `unavailable`.
 */
export interface StoreInspection {
  /** Every ledger of which anything stands in the log, once. */
  ledgerIds(): AsyncIterable<Walked<string>>;
  /** Buckets behind the end of their ledger that hold an event or a head. A claim alone may stand there. */
  strayBuckets(): AsyncIterable<StrayBucket>;
  /** Parts of a log that have to be full if it has come to seq `headSeq`, in order; those in which no event stands are left out. */
  fullBuckets(ledgerId: string, headSeq: number): AsyncIterable<FullBucket>;
  newestBatch(ledgerId: string): Promise<NewestBatch>;
  /** Rows of a ledger's log, and of what leads to it, that no reader can make anything of, or never comes to. */
  damagedRowsOf(ledgerId: string): AsyncIterable<DamagedRow>;
  /** The same of everything that belongs to no ledger's log. */
  damagedRows(): AsyncIterable<Walked<DamagedRow>>;
  records(): AsyncIterable<Walked<StoredRecord>>;
  /** What stands under the scopes of a ledger for the seqs from `from` to below `to`. In no order. */
  scopeEntries(ledgerId: string, from: number, to: number): Promise<ScopeEntry[]>;
  /** The command marks of a ledger that still count. */
  commandMarks(ledgerId: string): AsyncIterable<StoredMark>;
  cells(): AsyncIterable<Walked<StoredCell>>;
  lines(): AsyncIterable<Walked<StoredLine>>;
}
