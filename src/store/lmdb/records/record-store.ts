import { OutcomeUnknown } from '../../ledger-store.ts';
import {
  type FindPage,
  type FoundRecord,
  type LookupName,
  type PutResult,
  type RecordStore,
  type RecordWrite,
  type StoredRecord,
  type Swept,
  writeUnknown,
} from '../../record-store.ts';
import { decodeOrPassOver, decodeStored } from '../../unreadable-record.ts';
import { checkRecordWrite } from '../../write-checks.ts';
import type { Commits } from '../commits.ts';
import {
  expiryKey,
  lookupPrefix,
  orderIdKey,
  orderIdOfKey,
  recordKey,
  recordOfExpiryKey,
  timeOfExpiryKey,
} from '../keys.ts';
import { keysIn } from '../ranges.ts';
import { NOTHING, type Tables } from '../tables.ts';
import { formatRecord, idOf, parseRecord, type RecordEntry } from './stored-record.ts';

/** Versions reserved at a time, so that one write of the reservation serves for as many puts. */
const RESERVED_AT_ONCE = 2 ** 20;
const RESERVED = Buffer.from('record-versions');

interface Stored extends RecordEntry {
  readonly version: number;
}

/**
 * The records of one LMDB environment. A put or removal is one write block that is conditional on the version of the
 * record that was read. The block also changes the record's look-ups, so that look-ups always agree with the records.
 */
export class LmdbRecordStore implements RecordStore {
  readonly #openTables: Tables;
  readonly #commits: Commits;
  #nextVersion: number;
  #reserved: number;

  constructor(tables: Tables, commits: Commits) {
    this.#openTables = tables;
    this.#commits = commits;
    this.#nextVersion = Number(tables.facts.get(RESERVED) ?? 1);
    this.#reserved = this.#nextVersion;
  }

  /** Throws `unavailable` once the store is closed, because LMDB must not be used then. */
  get #tables(): Tables {
    this.#commits.checkReadable();
    return this.#openTables;
  }

  async get(kind: string, id: string): Promise<StoredRecord | null> {
    const key = recordKey(kind, id);
    return key === null ? null : shown(this.#fresh(kind, id, key));
  }

  async put(write: RecordWrite): Promise<PutResult> {
    checkRecordWrite(write);
    this.#commits.checkUsable();
    const { kind, id, value, lookups, expiresAt = null } = write;
    const key = recordKey(kind, id);
    if (key === null) throw new RangeError('No record can have this id');
    const before = this.#fresh(kind, id, key);
    if (write.replaces !== versionOf(before)) return { ok: false, current: shown(before) };
    const version = this.#newVersion();
    const after: Stored = { kind, id, version, value, lookups, expiresAt };
    if (await this.#replace(key, before, after)) return { ok: true, version: String(version) };
    return { ok: false, current: shown(this.#fresh(kind, id, key)) };
  }

  /**
   * Returns a version that was never given out in the life of the environment: a record that was removed and made anew
   * must not get a version that a caller still holds. A process starts after the last reserved version. A reservation
   * is queued before the caller's write, so that it is durable no later than that write.
   */
  #newVersion(): number {
    if (this.#nextVersion === this.#reserved) {
      this.#reserved += RESERVED_AT_ONCE;
      const { facts } = this.#tables;
      const written = this.#commits.write(() => facts.batch(() => facts.put(RESERVED, String(this.#reserved))));
      // Not awaited: a failure breaks the whole environment, and with it the caller's write.
      written.catch(() => {});
    }
    return this.#nextVersion++;
  }

  async remove(kind: string, id: string, version: string): Promise<boolean> {
    const key = recordKey(kind, id);
    const before = key === null ? null : this.#fresh(kind, id, key);
    if (key === null || before === null || versionOf(before) !== version) return false;
    return this.#replace(key, before, null);
  }

  async find(kind: string, lookup: LookupName, page: FindPage): Promise<FoundRecord[]> {
    const prefix = lookupPrefix(kind, lookup.name, lookup.value);
    let from = page.after === undefined ? undefined : orderIdKey(prefix, page.after.order, page.after.id);
    const found: FoundRecord[] = [];
    let charsLeft = page.charsMax ?? Number.POSITIVE_INFINITY;
    // Further records replace those that cannot be read, because a short page tells the caller that the list ends.
    for (let offset = page.offset; ; offset = 0) {
      const limit = page.limit - found.length;
      let keys = 0;
      for (const key of keysIn(this.#tables.lookups, { ...page, limit, offset, prefix, from, behindFrom: true })) {
        keys += 1;
        from = Buffer.from(key);
        const { order, id } = orderIdOfKey(key, prefix.length);
        if (page.before !== undefined && order >= page.before) return found;
        const record = recordKey(kind, id);
        const stored = record === null ? null : shown(this.#storedOrPassOver(kind, id, record));
        if (stored === null) continue;
        found.push({ ...stored, order });
        charsLeft -= stored.value.length;
        if (charsLeft <= 0) return found;
      }
      if (keys < limit || found.length >= page.limit) return found;
    }
  }

  async sweep(now: number, limit: number): Promise<Swept> {
    const removals: Promise<boolean>[] = [];
    const damaged = new Set<string>();
    for (const { expiry, record } of this.#expired(now)) {
      if (removals.length === limit) break;
      const stored = this.#storedOrPassOver('record', idOf(record), record);
      if (stored === null) damaged.add(expiry);
      else removals.push(this.#replace(record, stored, null));
    }
    const removed = (await Promise.all(removals)).filter((gone) => gone).length;
    for (const { expiry, at } of this.#expired(now)) if (!damaged.has(expiry)) return { removed, oldestLeft: at };
    return { removed, oldestLeft: null };
  }

  *#expired(now: number): Generator<{ readonly expiry: string; readonly record: Buffer; readonly at: number }, void> {
    const { expiries } = this.#tables;
    expiries.resetReadTxn();
    for (const key of expiries.getKeys()) {
      const id = Buffer.from(key).toString('latin1');
      const at = decodeOrPassOver({ kind: 'expiry', id, value: '' }, () => timeOfExpiryKey(key));
      if (at === undefined) continue;
      if (at >= now) return;
      yield { expiry: id, record: recordOfExpiryKey(key), at };
    }
  }

  /** The committed record, by a read that begins now. Throws UnreadableRecord. */
  #fresh(kind: string, id: string, key: Buffer): Stored | null {
    this.#tables.records.resetReadTxn();
    return decodeStored({ kind, id, value: '' }, () => this.#stored(key));
  }

  #stored(key: Buffer): Stored | null {
    const entry = this.#tables.records.getEntry(key);
    return entry === undefined ? null : { ...parseRecord(key, entry.value), version: entry.version ?? 0 };
  }

  /** null if the record is absent or damaged. Reports a damaged record. */
  #storedOrPassOver(kind: string, id: string, key: Buffer): Stored | null {
    return decodeOrPassOver({ kind, id, value: '' }, () => this.#stored(key)) ?? null;
  }

  /**
   * Replaces the record `before` by `after`, with look-ups and expiry, provided that `before` is still stored. Either
   * may be null for no record. Returns whether it did. Throws `outcome_unknown`.
   */
  async #replace(key: Buffer, before: Stored | null, after: Stored | null): Promise<boolean> {
    const { records } = this.#tables;
    const block = () => {
      if (after === null) records.remove(key);
      else records.put(key, formatRecord(after), after.version);
      this.#replaceLookups(before, after);
      this.#replaceExpiry(key, before?.expiresAt ?? null, after?.expiresAt ?? null);
    };
    try {
      return await this.#commits.write(() =>
        before === null ? records.ifNoExists(key, block) : records.ifVersion(key, before.version, block),
      );
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      throw writeUnknown(error);
    }
  }

  #replaceLookups(before: RecordEntry | null, after: RecordEntry | null): void {
    const { lookups } = this.#tables;
    const kept = new Map(after === null ? [] : lookupKeys(after));
    for (const [name, key] of before === null ? [] : lookupKeys(before)) if (!kept.delete(name)) lookups.remove(key);
    for (const key of kept.values()) lookups.put(key, NOTHING);
  }

  #replaceExpiry(key: Buffer, before: number | null, after: number | null): void {
    const { expiries } = this.#tables;
    if (before === after) return;
    if (before !== null) expiries.remove(expiryKey(before, key));
    if (after !== null) expiries.put(expiryKey(after, key), NOTHING);
  }
}

export function lookupKeys({ kind, id, lookups }: Pick<RecordEntry, 'kind' | 'id' | 'lookups'>): [string, Buffer][] {
  return lookups.map(({ name, value, order }) => {
    const key = orderIdKey(lookupPrefix(kind, name, value), order, id);
    return [key.toString('latin1'), key];
  });
}

function versionOf(stored: Stored | null): string {
  return stored === null ? 'absent' : String(stored.version);
}

function shown(stored: Stored | null): StoredRecord | null {
  if (stored === null) return null;
  const { kind, id, value } = stored;
  return { kind, id, version: versionOf(stored), value };
}
