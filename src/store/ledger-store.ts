import { LedgerError } from '../domain/errors.ts';
import type { CommandKey } from '../domain/event/event.ts';
import type { Projection } from '../domain/event/projection.ts';

export type { Projection };

/** Seq and hash of a ledger's newest event. */
export interface Head {
  readonly seq: number;
  /** Lower-case hex. */
  readonly hash: string;
}

/**
 * The right to append to one ledger until the next claim of it, also after the process has ended. `head` is the head at
 * the time of the claim. The caller keeps track of the head from then on. The fence is opaque: only the adapter that
 * made it reads it. Under a fence that it did not make, an append throws Fenced.
 */
export interface Claim {
  readonly ledgerId: string;
  readonly fence: string;
  /** null while the ledger has no event. */
  readonly head: Head | null;
}

export interface LedgerEntry {
  readonly seq: number;
  /** Lower-case hex; '' for seq 0. */
  readonly prevHash: string;
  readonly hash: string;
  /** The stored text of the event (src/domain/event/row.ts). Opaque to the store. */
  readonly row: string;
  readonly projections: readonly Projection[];
}

export interface StoredEntry {
  readonly seq: number;
  readonly row: string;
}

/**
 * A value by key. Each key belongs to one ledger, because versions are seqs of that ledger. A value of a smaller
 * version never replaces one of a greater version.
 */
export interface Cell {
  /** Seq of the event that the value came from. */
  readonly version: number;
  readonly value: string;
}

/** A line of a list. Every writer writes the same value under the same order, so a line may be written again. */
export interface Line {
  /** The sort key, compared by its UTF-8 bytes. Not empty, without NUL, at most orderMaxBytes (store-text.ts). */
  readonly order: string;
  readonly value: string;
}

/**
 * The state of a ledger or master after one event, so that a replay need not start at the first event. It is never
 * trusted for integrity.
 */
export interface Snapshot {
  /** Version of the fold that made the state. A fold of another version ignores the snapshot. */
  readonly foldVersion: number;
  readonly seq: number;
  readonly hash: string;
  /** JSON text. */
  readonly state: string;
}

/** The part of a command key that a look-up needs. */
export type CommandKeyRef = Pick<CommandKey, 'id' | 'permanent'>;

export interface FoundCommand {
  readonly seq: number;
  readonly fingerprint: string;
}

interface Part {
  readonly limit: number;
  readonly descending?: boolean;
  /**
   * The page ends where its values reach this many characters: it has at most so many and one entry, and the read holds
   * not much more meanwhile, whatever sizes entries have. A page with fewer characters, and with fewer entries than
   * `limit`, ends the list: an entry that cannot be read makes none shorter.
   */
  readonly charsMax?: number;
}

export interface Page extends Part {
  /** Order to start at, inclusive, in the direction of reading. Default: the end that reading starts from. */
  readonly from?: string;
  readonly offset?: number;
}

export interface ScopePage extends Part {
  /** Ledger seq to start at, as in Page. */
  readonly from?: number;
}

export interface ScopeEntries {
  readonly entries: StoredEntry[];
  /** Seqs that are listed under the scope but have no entry in the log. */
  readonly missing: number[];
}

/** The entries were not written and never will be, because there is a newer claim or another head. */
export class Fenced extends Error {
  constructor() {
    super('a newer claim of the ledger exists');
    this.name = 'Fenced';
  }
}

/** The entries may have been written, or may still be written later. A new claim followed by a read settles which. */
export class OutcomeUnknown extends Error {
  constructor(cause: unknown) {
    super('the store did not say whether the entries were written', { cause });
    this.name = 'OutcomeUnknown';
  }
}

/**
 * A write has failed, so the store accepts no more writes in this process. Nothing was written, and a retry in this
 * process fails too. Reads go on. Only a store on a disk of this node throws it.
 */
export class StoreStopped extends LedgerError {
  constructor() {
    super(
      'unavailable',
      'Nothing was written: this node cannot write to its disk any more and stops. Retry when its operator has mended the disk.',
    );
    this.name = 'StoreStopped';
  }
}

/**
 * The append-only logs of all ledgers. Every method may throw LedgerError `unavailable` if the store cannot be reached,
 * or `overloaded` if it has too much to do. Then nothing was written: an append that may have been written throws
 * OutcomeUnknown instead.
 *
 * Reads see every acknowledged append of every node. Before an append is acknowledged, it is possible that reads see
 * its entries without their projections: then a scope does not list them. This holds for the newest batch of a ledger
 * alone, until the next claim or append at the latest: no append begins before the projections of the one before. Ids,
 * scopes, keys, lists and rows are any well-formed Unicode text of any length, NUL included: a store with short keys
 * hashes the long ones. Arguments and results are never shared with the store.
 */
export interface LedgerStore {
  /**
   * Takes the ledger over. Once this resolves, no append under an earlier claim can ever land, and all entries up to
   * `head` have their projections, also those that other nodes wrote. If the outcome is unknown it throws
   * `unavailable`: then the claim may have fenced earlier claims, and has done nothing else.
   */
  claim(ledgerId: string): Promise<Claim>;

  /**
   * Writes all entries or none, provided that `claim` is the newest one and the head is the one that `entries[0]`
   * follows: entries[0].seq is the head's seq + 1, and entries[0].prevHash is the head's hash (0 and '' in an empty
   * ledger). When it resolves, the entries and their projections are durable and visible to every reader. Throws Fenced
   * or OutcomeUnknown. Throws TypeError, without writing, if the entries do not follow one another. A batch has at most
   * 64 entries and 256 KiB of rows, or one larger entry of at most 576 KiB (rowBytesMax). If the node gives this store
   * `batchLimits.commitsTogether` (src/actors/bounds.ts), it has at most 128 entries. The store must take every batch.
   * The caller must not start an append of a claim while another one of that claim is in flight.
   */
  append(claim: Claim, entries: readonly LedgerEntry[]): Promise<void>;

  /** Whether `claim` is still the newest claim and `head` still the head, by a read that begins after the call. */
  stands(claim: Claim, head: Head | null): Promise<boolean>;

  /** Returns null if the ledger has no events. Once `signal` aborts, rejects where further reads would be needed. */
  head(ledgerId: string, signal?: AbortSignal): Promise<Head | null>;

  /**
   * Returns a head that no crash, newer claim or late write can take back. It is at or behind the newest event, and at
   * or beyond every append that was answered before the call. A write that is under way is settled first, written or
   * not: a store with locks waits for the lock of the ledger. Nothing is claimed: the owner goes on appending. Returns
   * null if the ledger has no events.
   */
  certainHead(ledgerId: string): Promise<Head | null>;

  /**
   * Returns at most `limit` entries from seq `from` on, in order. It leaves out a seq only if the log lacks that seq,
   * also while others write. With `charsMax` the result ends as a page does (see Part). A result with fewer characters,
   * and with fewer entries than `limit`, reaches the end of the log.
   */
  read(ledgerId: string, from: number, limit: number, charsMax?: number): Promise<StoredEntry[]>;

  /**
   * Returns the entries of a scope in the order of reading. Seqs that are listed but gone from the log are returned as
   * `missing` and count towards the limit.
   */
  readScope(ledgerId: string, scope: string, page: ScopePage): Promise<ScopeEntries>;

  /**
   * Returns only the seqs of a scope, in the order of reading, including those that are gone from the log. No method
   * counts them.
   */
  scopeSeqs(ledgerId: string, scope: string, page: ScopePage): Promise<number[]>;

  /**
   * Returns the commands that were written under these keys, by id, each with its newest event. Command keys that are
   * not permanent are found for 24 hours by the clock of the adapter, which later removes them by itself: no method
   * does. The same id may stand once as a permanent key and once as a key for 24 hours: a look-up of one kind does not
   * find a key of the other.
   */
  findCommands(ledgerId: string, keys: readonly CommandKeyRef[]): Promise<Map<string, FoundCommand>>;

  /** Returns null if the key has no value. */
  cell(key: string): Promise<Cell | null>;
  /** Returns lines of a list in the order of reading. `offset` skips lines from where reading starts. */
  lines(list: string, page: Page): Promise<Line[]>;

  /** `owner` names a ledger or a master. Returns null if there is no snapshot that can be read. */
  snapshot(owner: string): Promise<Snapshot | null>;
  /**
   * An older snapshot (smaller seq) never replaces a newer one of the same fold version. A snapshot of another fold
   * version always replaces. Callers may ignore a failure.
   */
  saveSnapshot(owner: string, snapshot: Snapshot): Promise<void>;
}
