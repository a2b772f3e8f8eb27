import type { Projection } from '../domain/event/projection.ts';
import type { Cell, FoundCommand, Head, LedgerEntry, Line } from './ledger-store.ts';
import type { StoredRecord } from './record-store.ts';
import type { SignedHead } from './signed-heads.ts';

export interface ScopeEntry {
  readonly scope: string;
  readonly seq: number;
}

export interface StoredCommandKey extends FoundCommand {
  readonly id: string;
}

export interface StoredCell extends Cell {
  readonly key: string;
}

export interface StoredLine extends Line {
  readonly list: string;
}

/** A part of a log beyond the ledger's end. Readers do not find it until the ledger has grown that far. */
export interface StrayBucket {
  readonly ledgerId: string;
  readonly bucket: number;
  /** Seq of its first event, or of the head that it names if it has no event. */
  readonly seq: number;
  /** Where the ledger ends. The seq is -1 if the ledger has no event. */
  readonly end: { readonly bucket: number; readonly seq: number };
}

/** A full part of a log. Nothing is ever added to it. */
export interface FullBucket {
  readonly bucket: number;
  readonly lastSeq: number;
  /** The stored end of the bucket, by which readers go on to the next bucket. null if the store has no end for it. */
  readonly head: Head | null;
}

/** A row that differs from what the service writes there. */
export interface DamagedRow {
  /** `wrong_writetime`: its cells have a time that the service does not give, so that later writes may be lost. */
  readonly type: 'damaged_row' | 'wrong_writetime';
  readonly table: string;
  readonly key: string;
  /** null if the row belongs to no ledger. */
  readonly ledgerId: string | null;
  /** null if the row belongs to no single event. */
  readonly seq: number | null;
  readonly detail: string;
}

/** Names of what stands beside the log of a ledger. */
export interface NamesBesideLog {
  readonly ledgerId: string;
  readonly cells: Iterable<string>;
  readonly lists: Iterable<string>;
  /** Lists may be shared by ledgers. */
  readonly isOwnLine: (list: string, order: string) => boolean;
  /** Of snapshots. */
  readonly owners: Iterable<string>;
}

/**
 * What the store keeps of the newest batch of a ledger, until the next batch, to complete its projections. A store that
 * writes projections with the append keeps nothing: `projectedSeq` is the head's seq, `pending` is empty.
 */
export interface NewestBatch {
  /** All events up to this seq have their projections. Later events may still lack theirs. -1 if there are none. */
  readonly projectedSeq: number;
  /** The projections of the later events, as the batch keeps them. null if they cannot be read, or are not its own. */
  readonly pending: readonly Projection[] | null;
}

/** `share` is the part of a walk through the store that is done, 0 to 1. */
export interface Walked<T> {
  readonly found: T;
  readonly share: number;
}

/**
 * A store as a scrub reads it: all stored data, also data that no reader would find. It only reads, and does not hold
 * up serving nodes. It may or may not find what is written meanwhile. Every method may throw LedgerError `unavailable`.
 */
export interface StoreInspection {
  /** Yields each ledger that has anything in the log, once. */
  ledgerIds(): AsyncIterable<Walked<string>>;
  /**
   * Yields buckets beyond the end of their ledger that hold an event or a head. A bucket that has only a claim is sound
   * there, and is not yielded. A store that does not keep ledgers in parts of fixed size yields none, here and in
   * `fullBuckets`.
   */
  strayBuckets(): AsyncIterable<StrayBucket>;
  /** Yields, in order, the buckets that must be full if the head is at `headSeq`. Leaves out buckets without events. */
  fullBuckets(ledgerId: string, headSeq: number): AsyncIterable<FullBucket>;
  newestBatch(ledgerId: string): Promise<NewestBatch>;
  /** Yields rows of a ledger's log, and of what points to the log, that readers cannot parse or never reach. */
  damagedRowsOf(ledgerId: string): AsyncIterable<DamagedRow>;
  /**
   * Yields rows beside the log of a ledger whose times the service has not given, as far as these names lead to them. A
   * store without times of rows yields none.
   */
  misdatedRows(names: NamesBesideLog): AsyncIterable<DamagedRow>;
  /** Yields the damaged rows of everything that belongs to no ledger's log. */
  damagedRows(): AsyncIterable<Walked<DamagedRow>>;
  records(): AsyncIterable<Walked<StoredRecord>>;
  /** Returns, in no order, what the scopes of a ledger list for the seqs from `from` to below `to`. */
  scopeEntries(ledgerId: string, from: number, to: number): Promise<ScopeEntry[]>;
  /** Yields the command keys of a ledger that have not expired. */
  commandKeys(ledgerId: string): AsyncIterable<StoredCommandKey>;
  cells(): AsyncIterable<Walked<StoredCell>>;
  lines(): AsyncIterable<Walked<StoredLine>>;
}

/** A stored value with hashes of a tree. */
export interface StoredHashes {
  readonly table: string;
  /** Its key, as a report names it. */
  readonly key: string;
  /** The origin of the log. null if the value does not say. */
  readonly owner: string | null;
  readonly level: number;
  /** Of its first hash in its level. */
  readonly position: number;
  /** In order; null in place of a hash that is not stored. null if the value does not fit its place. */
  readonly hashes: readonly (Buffer | null)[] | null;
  /** What is wrong with the time of the value, in words. null, or left out by a store without times: nothing. */
  readonly misdated?: string | null;
  /** Removes this value, and no value that was put in its place since. It may be repeated. */
  remove(): Promise<void>;
}

export interface StoredSignedHead {
  /** null if the key does not say. */
  readonly origin: string | null;
  /** null if the value cannot be read. */
  readonly head: SignedHead | null;
  /** As in StoredHashes. */
  readonly misdated?: string | null;
}

/**
 * The trees of all logs as a scrub reads them, beside serving nodes where a store has several. It may or may not find
 * what is written meanwhile. Every method may throw LedgerError `unavailable`.
 */
export interface TreeInspection {
  /**
   * Yields every stored value with hashes, also those that no reader would use. The values of a log may be scattered.
   */
  hashes(): AsyncIterable<Walked<StoredHashes>>;
  signedHeads(): AsyncIterable<StoredSignedHead>;
}

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
