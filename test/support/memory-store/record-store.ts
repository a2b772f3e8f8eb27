import type {
  FindPage,
  FoundRecord,
  Lookup,
  PutResult,
  RecordStore,
  RecordWrite,
  StoredRecord,
  Swept,
} from '../../../src/store/record-store.ts';
import { compareText } from '../../../src/store/store-text.ts';
import { checkRecordWrite } from '../../../src/store/write-checks.ts';
import { cutBehind, partOf } from './pages.ts';

interface KeptRecord {
  readonly shown: StoredRecord;
  readonly lookups: readonly Lookup[];
  readonly expiresAt: number | null;
}

/** The data of memory record stores. Several stores over one of these behave like several nodes over one database. */
interface MemoryRecordData {
  versions: number;
  /** By kind, then id. */
  readonly kinds: Map<string, Map<string, KeptRecord>>;
}

export function emptyRecordData(): MemoryRecordData {
  return { versions: 0, kinds: new Map() };
}

/** Records in memory, for tests. It copies and freezes its data, checks every write and never answers synchronously. */
export class MemoryRecordStore implements RecordStore {
  readonly #data: MemoryRecordData;

  constructor(data: MemoryRecordData = emptyRecordData()) {
    this.#data = data;
  }

  async get(kind: string, id: string): Promise<StoredRecord | null> {
    await later();
    return this.#kept(kind, id)?.shown ?? null;
  }

  async put(write: RecordWrite): Promise<PutResult> {
    const { kind, id, value, replaces, lookups, expiresAt = null } = structuredClone(write);
    checkRecordWrite(write);
    await later();
    const current = this.#kept(kind, id)?.shown ?? null;
    if (replaces !== (current?.version ?? 'absent')) return { ok: false, current };
    const version = `v${++this.#data.versions}`;
    const records = this.#data.kinds.get(kind) ?? new Map<string, KeptRecord>();
    records.set(id, { shown: Object.freeze({ kind, id, version, value }), lookups, expiresAt });
    this.#data.kinds.set(kind, records);
    await later();
    return { ok: true, version };
  }

  async remove(kind: string, id: string, version: string): Promise<boolean> {
    await later();
    if (this.#kept(kind, id)?.shown.version !== version) return false;
    return this.#data.kinds.get(kind)?.delete(id) ?? false;
  }

  async find(
    kind: string,
    lookup: { readonly name: string; readonly value: string },
    page: FindPage,
  ): Promise<FoundRecord[]> {
    await later();
    const found: FoundRecord[] = [];
    for (const { shown, lookups } of this.#data.kinds.get(kind)?.values() ?? [])
      for (const { name, value, order } of lookups)
        if (name === lookup.name && value === lookup.value) found.push(Object.freeze({ ...shown, order }));
    found.sort(compareFound);
    const { after, before, descending = false } = page;
    const startsAt = (record: FoundRecord) =>
      after === undefined || (descending ? -compareFound(record, after) : compareFound(record, after)) > 0;
    const wanted = before === undefined ? found : found.filter(({ order }) => order < before);
    return cutBehind(partOf(wanted, { ...page, startsAt }), page.charsMax);
  }

  async sweep(now: number, limit: number): Promise<Swept> {
    await later();
    const expired: { readonly at: number; remove(): void }[] = [];
    for (const records of this.#data.kinds.values())
      for (const [id, { expiresAt: at }] of records)
        if (at !== null && at < now) expired.push({ at, remove: () => void records.delete(id) });
    expired.sort((a, b) => a.at - b.at);
    const gone = expired.slice(0, limit);
    for (const one of gone) one.remove();
    return { removed: gone.length, oldestLeft: expired[limit]?.at ?? null };
  }

  #kept(kind: string, id: string): KeptRecord | undefined {
    return this.#data.kinds.get(kind)?.get(id);
  }
}

function compareFound(a: { order: string; id: string }, b: { order: string; id: string }): number {
  return compareText(a.order, b.order) || compareText(a.id, b.id);
}

/** Waits for a microtask, because no real store answers synchronously. */
function later(): Promise<void> {
  return Promise.resolve();
}
