import { LedgerError } from '../../../domain/errors.ts';
import { commandKeyLifeMs } from '../../../domain/event/event.ts';
import { KeyedMutex } from '../../keyed-mutex.ts';
import {
  type Cell,
  type Claim,
  type CommandKeyRef,
  Fenced,
  type FoundCommand,
  type Head,
  type LedgerEntry,
  type LedgerStore,
  type Line,
  type Page,
  type ScopeEntries,
  type ScopePage,
  type Snapshot,
  type StoredEntry,
} from '../../ledger-store.ts';
import { charsOf } from '../../pages.ts';
import { decodeOrPassOver, UnreadableRecord } from '../../unreadable-record.ts';
import { checkEntryRun } from '../../write-checks.ts';
import type { Commits } from '../commits.ts';
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
import { TimeWindows } from '../time-windows.ts';
import { putEntries } from './append-block.ts';
import { readSnapshot, writeSnapshot } from './snapshots.ts';
import { expectedVersion, formatHead, parseCommandKey, parseHead } from './stored-values.ts';

/** Attempts of a claim. An attempt fails if another process changed the head record after it was read. */
const CLAIM_ATTEMPTS_MAX = 200;

/** A command whose stored key is damaged: its retry is refused as that of another command. */
const damagedCommand: FoundCommand = { seq: 0, fingerprint: '' };

/** Rows of a page behind which the event loop goes on. */
const rowsInIterationMax = 256;

/**
 * LMDB answers without I/O of this thread. So a reader of many pages, such as the replay of a long ledger, would hold
 * up the event loop until the last one.
 */
async function endOfPage(
  page: readonly ({ readonly value: string } | { readonly row: string })[],
  charsMax = Number.POSITIVE_INFINITY,
): Promise<void> {
  if (page.length < rowsInIterationMax && charsOf(page) < charsMax) return;
  await new Promise((resolve) => void setImmediate(resolve));
}

/**
 * The ledgers of one LMDB environment. Every claim and append is one write block that is conditional on the version of
 * the head record, which stands for a claim and a head (stored-values.ts). So two processes on one directory could slow
 * each other down but never fork a ledger.
 */
export class LmdbLedgerStore implements LedgerStore {
  readonly #openTables: Tables;
  readonly #commits: Commits;
  readonly #now: () => number;
  readonly #windows: TimeWindows;
  readonly #mutex = new KeyedMutex(null);

  /** `now` returns milliseconds since 1970. Only the retention of command keys depends on it. */
  constructor(tables: Tables, commits: Commits, now: () => number) {
    this.#openTables = tables;
    this.#commits = commits;
    this.#now = now;
    this.#windows = new TimeWindows('commands', commandKeyLifeMs, tables.commands, tables.facts, commits);
  }

  claim(ledgerId: string): Promise<Claim> {
    return this.#mutex.take(ledgerId, 'rare', () => this.#claim(ledgerId));
  }

  async #claim(ledgerId: string): Promise<Claim> {
    // Checked before the head is read, because after a failed write LMDB may refuse reads too.
    this.#commits.checkUsable();
    const key = ledgerKey(ledgerId);
    for (let attempt = 0; attempt < CLAIM_ATTEMPTS_MAX; attempt++) {
      const { version, text, head } = this.#freshHead(key);
      const { heads } = this.#tables;
      const claimed = version + 1;
      // A damaged text stays as it is, so that `scrub` finds it.
      const write = () => heads.put(key, text, claimed);
      const held = await this.#commits.writeRepeatable('The store did not answer; nothing was appended.', () =>
        version === 0 ? heads.ifNoExists(key, write) : heads.ifVersion(key, version, write),
      );
      if (held) return { ledgerId, fence: String(claimed), head };
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
    if (!this.#isAt(key, version, before)) throw new Fenced();
    const commandKeys = this.#windows.at(this.#now());
    const { heads } = this.#tables;
    const held = await this.#commits.write(() =>
      heads.ifVersion(key, version, () => {
        heads.put(key, formatHead(last), version + entries.length);
        putEntries(this.#tables, commandKeys, key, entries);
      }),
    );
    if (!held) throw new Fenced();
  }

  async stands(claim: Claim, head: Head | null): Promise<boolean> {
    this.#commits.checkUsable();
    return this.#isAt(ledgerKey(claim.ledgerId), expectedVersion(claim, head), head);
  }

  async head(ledgerId: string): Promise<Head | null> {
    return this.#freshHead(ledgerKey(ledgerId)).head;
  }

  async certainHead(ledgerId: string): Promise<Head | null> {
    // After a failed write the head that LMDB shows proves nothing. Before that, readers see durable commits alone.
    this.#commits.checkUsable();
    return this.#freshHead(ledgerKey(ledgerId)).head;
  }

  async read(ledgerId: string, from: number, limit: number, charsMax?: number): Promise<StoredEntry[]> {
    const prefix = ledgerKey(ledgerId);
    const found = entriesIn(this.#tables.events, { prefix, from: seqKey(prefix, from), limit }, charsMax);
    await endOfPage(found, charsMax);
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
    await endOfPage(entries, page.charsMax);
    return { entries, missing };
  }

  async scopeSeqs(ledgerId: string, scope: string, page: ScopePage): Promise<number[]> {
    const prefix = scopePrefix(ledgerKey(ledgerId), scope);
    const from = page.from === undefined ? undefined : seqKey(prefix, page.from);
    return Array.from(keysIn(this.#tables.scopes, { ...page, prefix, from }), seqOfKey);
  }

  async findCommands(ledgerId: string, keys: readonly CommandKeyRef[]): Promise<Map<string, FoundCommand>> {
    const { permanentCommands } = this.#tables;
    const windows = this.#windows.tables();
    const ledger = ledgerKey(ledgerId);
    const found = new Map<string, FoundCommand>();
    for (const { id, permanent } of keys) {
      const key = commandKey(ledger, id);
      for (const table of permanent ? [permanentCommands] : windows) {
        const stored = table.get(key);
        if (stored === undefined) continue;
        const text = { kind: 'command', id: `${ledgerId} ${id}`, value: '' };
        found.set(id, decodeOrPassOver(text, () => parseCommandKey(stored)) ?? damagedCommand);
        break;
      }
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
    return readSnapshot(this.#tables, owner);
  }

  saveSnapshot(owner: string, snapshot: Snapshot): Promise<void> {
    return writeSnapshot(this.#openTables, this.#commits, owner, snapshot);
  }

  #freshHead(key: Buffer): { readonly version: number; readonly text: string; readonly head: Head | null } {
    const { heads } = this.#tables;
    heads.resetReadTxn();
    const stored = heads.getEntry(key);
    if (stored === undefined) return { version: 0, text: formatHead(null), head: null };
    const { version = 0, value: text } = stored;
    try {
      return { version, text, head: parseHead(key, text) };
    } catch (error) {
      if (!(error instanceof UnreadableRecord)) throw error;
      return { version, text, head: this.#headOfRows(key) };
    }
  }

  /**
   * The seq of the last row with an empty hash, which no event has. So readers of a ledger with a damaged head see its
   * events, and nothing is decided on it. Without rows it is the first seq: null would let the ledger begin again.
   */
  #headOfRows(key: Buffer): Head {
    const [last] = keysIn(this.#tables.events, { prefix: key, limit: 1, descending: true });
    return { seq: last === undefined ? 0 : seqOfKey(last), hash: '' };
  }

  #isAt(key: Buffer, version: number, head: Head | null): boolean {
    const stored = this.#freshHead(key);
    return stored.version === version && stored.head?.seq === head?.seq && stored.head?.hash === head?.hash;
  }
}
