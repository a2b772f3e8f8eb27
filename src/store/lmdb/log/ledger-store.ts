import { LedgerError } from '../../../domain/errors.ts';
import { checkEntryRun } from '../../entry-order.ts';
import {
  type Cell,
  type Claim,
  type CommandKeyName,
  Fenced,
  type FoundCommand,
  type Head,
  type LedgerEntry,
  type LedgerStore,
  type Line,
  OutcomeUnknown,
  type Page,
  type ScopeEntries,
  type ScopePage,
  type Snapshot,
  type StoredEntry,
} from '../../ledger-store.ts';
import type { Commits } from '../commits.ts';
import { KeyedMutex } from '../keyed-mutex.ts';
import {
  commandKey,
  ledgerKey,
  listPrefix,
  orderIdOfKey,
  orderKey,
  scopePrefix,
  seqKey,
  seqOfKey,
  textKey,
} from '../keys.ts';
import { entriesIn, keysIn } from '../ranges.ts';
import type { Tables } from '../tables.ts';
import { putEntries } from './append-block.ts';
import { parseCommand } from './command-value.ts';
import { CommandWindows } from './command-windows.ts';
import { claimedVersion, expectedVersion, fenceOf, formatHead, parseHead } from './fence.ts';
import { LmdbSnapshots } from './snapshots.ts';

/** Attempts of a claim. An attempt fails if another process changed the head record after it was read. */
const CLAIM_ATTEMPTS_MAX = 200;

interface HeadRecord {
  readonly version: number;
  readonly head: Head | null;
}

/**
 * The ledgers of one LMDB environment. Every claim and append is one write block that is conditional on the version of
 * the head record. The version stands for a claim and a head (fence.ts). So two processes on one directory could slow
 * each other down but never fork a ledger.
 */
export class LmdbLedgerStore implements LedgerStore {
  readonly #openTables: Tables;
  readonly #commits: Commits;
  readonly #windows: CommandWindows;
  readonly #snapshots: LmdbSnapshots;
  readonly #mutex = new KeyedMutex();

  /** `now` returns milliseconds since 1970. Only the retention of command keys depends on it. */
  constructor(tables: Tables, commits: Commits, now: () => number) {
    this.#openTables = tables;
    this.#commits = commits;
    this.#windows = new CommandWindows(tables, commits, now);
    this.#snapshots = new LmdbSnapshots(tables, commits);
  }

  claim(ledgerId: string): Promise<Claim> {
    return this.#mutex.take(ledgerId, () => this.#claim(ledgerId));
  }

  async #claim(ledgerId: string): Promise<Claim> {
    // Checked before the head is read, because after a failed write LMDB may refuse reads too.
    this.#commits.checkUsable();
    const key = ledgerKey(ledgerId);
    for (let attempt = 0; attempt < CLAIM_ATTEMPTS_MAX; attempt++) {
      const { version, head } = this.#freshHead(key);
      const { heads } = this.#tables;
      const claimed = claimedVersion(version);
      const write = () => heads.put(key, formatHead(head), claimed);
      const held = await this.#settled(() =>
        version === 0 ? heads.ifNoExists(key, write) : heads.ifVersion(key, version, write),
      );
      if (held) return { ledgerId, fence: fenceOf(claimed), head };
    }
    throw new LedgerError('unavailable', 'Too many claims of this ledger at once.');
  }

  /** Throws `unavailable` once the store is closed, because LMDB must not be used then. */
  get #tables(): Tables {
    this.#commits.checkReadable();
    return this.#openTables;
  }

  async append(claim: Claim, entries: readonly LedgerEntry[]): Promise<void> {
    const { first, last } = checkEntryRun(entries);
    this.#commits.checkUsable();
    const key = ledgerKey(claim.ledgerId);
    const before = first.seq === 0 ? null : { seq: first.seq - 1, hash: first.prevHash };
    const version = expectedVersion(claim, before);
    if (!isAt(this.#freshHead(key), version, before)) throw new Fenced();
    const commands = this.#windows.current();
    const { heads } = this.#tables;
    const held = await this.#commits.write(() =>
      heads.ifVersion(key, version, () => {
        heads.put(key, formatHead(last), version + entries.length);
        putEntries(this.#tables, commands, key, entries);
      }),
    );
    if (!held) throw new Fenced();
  }

  async stands(claim: Claim, head: Head | null): Promise<boolean> {
    this.#commits.checkUsable();
    return isAt(this.#freshHead(ledgerKey(claim.ledgerId)), expectedVersion(claim, head), head);
  }

  async head(ledgerId: string): Promise<Head | null> {
    return this.#freshHead(ledgerKey(ledgerId)).head;
  }

  async read(ledgerId: string, from: number, limit: number, charsMax?: number): Promise<StoredEntry[]> {
    const prefix = ledgerKey(ledgerId);
    const found = entriesIn(this.#tables.events, { prefix, from: seqKey(prefix, from), limit }, charsMax);
    return found.map(({ key, value }) => ({ seq: seqOfKey(key), row: value }));
  }

  async readScope(ledgerId: string, scope: string, page: ScopePage): Promise<ScopeEntries> {
    const ledger = ledgerKey(ledgerId);
    const entries: StoredEntry[] = [];
    const missing: number[] = [];
    let charsLeft = page.charsMax ?? Number.POSITIVE_INFINITY;
    for (const seq of await this.scopeSeqs(ledgerId, scope, page)) {
      if (charsLeft <= 0) break;
      const row = this.#tables.events.get(seqKey(ledger, seq));
      if (row === undefined) missing.push(seq);
      else entries.push({ seq, row });
      charsLeft -= row?.length ?? 0;
    }
    return { entries, missing };
  }

  async scopeSeqs(ledgerId: string, scope: string, page: ScopePage): Promise<number[]> {
    const prefix = scopePrefix(ledgerKey(ledgerId), scope);
    const from = page.from === undefined ? undefined : seqKey(prefix, page.from);
    return Array.from(keysIn(this.#tables.scopes, { ...page, prefix, from }), seqOfKey);
  }

  async findCommands(ledgerId: string, keys: readonly CommandKeyName[]): Promise<Map<string, FoundCommand>> {
    this.#commits.checkReadable();
    const ledger = ledgerKey(ledgerId);
    const found = new Map<string, FoundCommand>();
    for (const { id, permanent } of keys) {
      const key = commandKey(ledger, id);
      const value = permanent ? this.#tables.permanentCommands.get(key) : this.#windows.find(key);
      if (value !== undefined) found.set(id, parseCommand(value));
    }
    return found;
  }

  async cell(key: string): Promise<Cell | null> {
    const stored = this.#tables.cells.getEntry(textKey(key));
    return stored === undefined ? null : { version: stored.version ?? 0, value: stored.value };
  }

  async lines(list: string, page: Page): Promise<Line[]> {
    const prefix = listPrefix(list);
    const from = page.from === undefined ? undefined : orderKey(prefix, page.from);
    const found = entriesIn(this.#tables.lines, { ...page, prefix, from }, page.charsMax);
    return found.map(({ key, value }) => ({ order: orderIdOfKey(key, prefix.length).order, value }));
  }

  async snapshot(owner: string): Promise<Snapshot | null> {
    this.#commits.checkReadable();
    return this.#snapshots.get(owner);
  }

  saveSnapshot(owner: string, snapshot: Snapshot): Promise<void> {
    return this.#snapshots.save(owner, snapshot);
  }

  /** Returns the committed head record, by a read that begins now. */
  #freshHead(key: Buffer): HeadRecord {
    const { heads } = this.#tables;
    heads.resetReadTxn();
    const stored = heads.getEntry(key);
    return stored === undefined
      ? { version: 0, head: null }
      : { version: stored.version ?? 0, head: parseHead(key, stored.value) };
  }

  /** Runs a write of a claim. Its caller need not know whether it happened, so an unknown outcome is `unavailable`. */
  async #settled(start: () => Promise<boolean>): Promise<boolean> {
    try {
      return await this.#commits.write(start);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      throw new LedgerError('unavailable', 'The store did not answer; nothing was appended.', {}, error);
    }
  }
}

function isAt(record: HeadRecord, version: number, head: Head | null): boolean {
  return record.version === version && record.head?.seq === head?.seq && record.head?.hash === head?.hash;
}
