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
  /** Every event up to this seq has its projections; -1: none. Those behind may have theirs still to come. */
  projectedSeq(ledgerId: string): Promise<number>;
  /** What stands under the scopes of a ledger for the seqs from `from` to below `to`. In no order. */
  scopeEntries(ledgerId: string, from: number, to: number): Promise<ScopeEntry[]>;
  /** The command marks of a ledger that still count. */
  commandMarks(ledgerId: string): AsyncIterable<StoredMark>;
  cells(): AsyncIterable<Walked<StoredCell>>;
  lines(): AsyncIterable<Walked<StoredLine>>;
}
