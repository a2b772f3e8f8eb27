import type { CommandKey } from '../domain/event.ts';
import type { Projection } from '../domain/projection.ts';

export type { Projection };

/** The newest event of a ledger: its place and its hash. */
export interface Head {
  readonly seq: number;
  /** Lower-case hex. */
  readonly hash: string;
}

/**
 * The right to append to one ledger, until somebody claims it anew. `head` is the head as of the claim; the caller
 * keeps track of it from there. The fence is the adapter's own and means nothing to others.
 */
export interface Claim {
  readonly ledgerId: string;
  readonly fence: string;
  /** null while the ledger has no event. */
  readonly head: Head | null;
}

/** One event on its way into the store, with what readers look up beside the log. */
export interface LedgerEntry {
  readonly seq: number;
  /** Lower-case hex; '' for seq 0. */
  readonly prevHash: string;
  readonly hash: string;
  /** The event in its stored form (domain/row.ts). The store does not look into it. */
  readonly row: string;
  readonly projections: readonly Projection[];
}

/** An event as it was stored. */
export interface StoredEntry {
  readonly seq: number;
  readonly row: string;
}

/** A value by key. A key belongs to one ledger: the seqs that are its versions count in that ledger alone. */
export interface Cell {
  /** seq of the event that it came from. */
  readonly version: number;
  readonly value: string;
}

/** A line of a list. The same order is always written with the same value, whoever writes it, so lines may be written again. */
export interface Line {
  /** Not empty, no NUL, at most orderMaxBytes (store-text.ts). Lines are sorted by its UTF-8 bytes. */
  readonly order: string;
  readonly value: string;
}

/** Folded state at one event, kept so that a ledger or master need not be replayed from its start. Never trusted for integrity. */
export interface Snapshot {
  /** Which fold made it; another one throws it away. */
  readonly foldVersion: number;
  readonly seq: number;
  readonly hash: string;
  /** JSON text. */
  readonly state: string;
}

/** By what a command mark is looked for. */
export type MarkName = Pick<CommandKey, 'id' | 'permanent'>;

export interface FoundCommand {
  readonly seq: number;
  readonly fingerprint: string;
}

/** Which part of a list to read. */
export interface Page {
  /** Order to start at, inclusive, in the direction of reading. */
  readonly from?: string;
  readonly limit: number;
  readonly offset?: number;
  readonly descending?: boolean;
  /** The page ends at the line with which its values have so many characters, or soon behind it. Such a page may be followed by another. */
  readonly charsMax?: number;
}

export interface ScopePage {
  /** Ledger seq to start at, inclusive, in the direction of reading. Default: the end that reading starts from. */
  readonly from?: number;
  readonly limit: number;
  readonly descending?: boolean;
  /** The page ends at the entry with which its rows have so many characters, or soon behind it. Such a page may be followed by another. */
  readonly charsMax?: number;
}

export interface ScopeEntries {
  readonly entries: StoredEntry[];
  readonly missing: number[];
}

/** Nothing was written, and never will be: a newer claim exists, or the head is another. */
export class Fenced extends Error {
  constructor() {
    super('a newer claim of the ledger exists');
    this.name = 'Fenced';
  }
}

/** The entries may have been written, or may yet be: claim again, then read, and it is certain. */
export class OutcomeUnknown extends Error {
  constructor(cause: unknown) {
    super('the store did not say whether the entries were written', { cause });
    this.name = 'OutcomeUnknown';
  }
}

/**
 * The append-only logs of all ledgers. Every method may throw LedgerError `unavailable` when the store cannot be
 * reached; nothing was written then, unless the method says OutcomeUnknown.
 *
 * Reads see every append that was answered, whichever node answered it. Ids, scopes, keys and lists are any text of
 * well-formed Unicode; what a caller hands over or gets back is never shared with the store.
 */
export interface LedgerStore {
  /**
   * Takes the ledger over. Once this resolves, no append under an earlier claim can ever land, and every projection of
   * the entries up to `head` is there, whoever wrote them. A claim whose outcome is unknown is thrown as `unavailable`: it
   * has shut out earlier claims at the most.
   */
  claim(ledgerId: string): Promise<Claim>;

  /**
   * Writes all entries or none. They go in only under the newest claim and only onto the head that `entries[0]` seals:
   * entries[0].seq is the head's seq + 1 and entries[0].prevHash its hash (0 and '' for the first). When it resolves they
   * are durable, with their projections, for every reader. Throws Fenced or OutcomeUnknown.
   * One append of a claim may be under way at a time. Entries that do not follow one another are a mistake of the
   * caller's: TypeError, and nothing is written.
   */
  append(claim: Claim, entries: readonly LedgerEntry[]): Promise<void>;

  /** Whether the claim is still the newest and the head still this one, by a read begun after the call. */
  stands(claim: Claim, head: Head | null): Promise<boolean>;

  /** null for a ledger without events. */
  head(ledgerId: string): Promise<Head | null>;

  /**
   * Entries from seq `from` on, in order, at most `limit`. A hole in the log is a hole in the answer, and there is no other, whatever is
   * written meanwhile. With `charsMax` the answer ends at the entry with which its rows have so many characters, or soon behind it: one
   * that has fewer characters, and fewer entries than `limit`, reaches the end of the log.
   */
  read(ledgerId: string, from: number, limit: number, charsMax?: number): Promise<StoredEntry[]>;

  /**
   * Entries of a ledger that stand under a scope, in the order of reading. What is listed but gone from the log is told
   * as `missing` seqs instead, and counts towards the limit.
   */
  readScope(ledgerId: string, scope: string, page: ScopePage): Promise<ScopeEntries>;

  /** Just the seqs that are listed under a scope, in the order of reading, those that are gone from the log too. */
  scopeSeqs(ledgerId: string, scope: string, page: ScopePage): Promise<number[]>;

  /**
   * Found commands by id, the newest event of each; those older than 24 hours, unless permanent, may be missing. A mark is looked for
   * as it was made: a permanent one is not found where one for 24 hours is asked for, nor the other way round.
   */
  findCommands(ledgerId: string, marks: readonly MarkName[]): Promise<Map<string, FoundCommand>>;

  cell(key: string): Promise<Cell | null>;
  /** Lines of a list, in the order of reading. `offset` skips lines from where reading starts. */
  lines(list: string, page: Page): Promise<Line[]>;

  /** `owner` is a ledger or a master. A snapshot that cannot be read is none. */
  snapshot(owner: string): Promise<Snapshot | null>;
  /** An older snapshot (smaller seq) never replaces a newer one of the same fold version. Another fold version always replaces. Failing is harmless. */
  saveSnapshot(owner: string, snapshot: Snapshot): Promise<void>;
}
