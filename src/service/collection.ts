import type { FindPage, FoundRecord, Lookup, RecordStore } from '../store/record-store.ts';
import { loopShare } from './loop-share.ts';
import { decodeRecord, type RecordForm } from './record-form.ts';

/** Records of a list that are read, and held, at once: of the largest ones (1 MB) what takes some 20 ms. */
const readAtOnceMax = 24;

/** A record as read, with the version that a change of it replaces. */
export interface Held<T> {
  readonly version: string;
  readonly value: T;
}

/** How values of one kind are kept: under which id, and how else they are found. */
export interface CollectionRules<T> extends RecordForm<T> {
  id(value: T): string;
  lookups(value: T): Lookup[];
  expiresAt?(value: T): number;
}

export interface Collection<T> {
  get(id: string): Promise<Held<T> | null>;
  /** False if there is one with this id already; nothing was written then. */
  create(value: T): Promise<boolean>;
  /** False if the record has been changed since it was read. */
  replace(held: Held<T>, value: T): Promise<boolean>;
  /** Reads, changes and writes until no other change comes between. `change` may throw to refuse. null: there is no such record. */
  update(id: string, change: (value: T) => T): Promise<T | null>;
  remove(id: string, held: Held<T>): Promise<boolean>;
  find(name: string, value: string, page: FindPage): Promise<T[]>;
  /** The same, one by one, for who keeps less of them, or looks for some: no more than a piece of the list is held. */
  walk(name: string, value: string, page: FindPage): AsyncGenerator<T>;
}

/** Values of one type as JSON records. Reads throw DamagedRecord for a record that cannot be read. */
export function collection<T>(store: RecordStore, rules: CollectionRules<T>): Collection<T> {
  const write = (value: T, replaces: string) =>
    store.put({
      kind: rules.kind,
      id: rules.id(value),
      replaces,
      value: JSON.stringify(value),
      lookups: rules.lookups(value),
      ...(rules.expiresAt === undefined ? {} : { expiresAt: rules.expiresAt(value) }),
    });
  const get = async (id: string): Promise<Held<T> | null> => {
    const record = await store.get(rules.kind, id);
    return record === null ? null : { version: record.version, value: decodeRecord(record, rules) };
  };
  /** Everything else that is ready has its turn between the pieces, and within one that is large. */
  async function* walk(name: string, value: string, page: FindPage): AsyncGenerator<T> {
    let behind: Omit<FindPage, 'limit'> = page;
    for (let left = page.limit; left > 0; left -= readAtOnceMax) {
      const limit = Math.min(left, readAtOnceMax);
      // One record is no long read.
      const turn = page.limit > 1 ? loopShare.turn() : null;
      if (turn !== null) await turn;
      const found = await store.find(rules.kind, { name, value }, { ...behind, limit });
      loopShare.use(found.length, charsOf(found));
      for (const record of found) {
        const another = page.limit > 1 ? loopShare.turn() : null;
        if (another !== null) await another;
        loopShare.use(0, record.value.length);
        yield decodeRecord(record, rules);
      }
      const last = found.at(-1);
      if (last === undefined || found.length < limit) return;
      behind = { ...page, offset: 0, after: last };
    }
  }

  return {
    get,
    create: async (value) => (await write(value, 'absent')).ok,
    replace: async (held, value) => (await write(value, held.version)).ok,
    update: async (id, change) => {
      for (;;) {
        const held = await get(id);
        if (held === null) return null;
        const value = change(held.value);
        if (value === held.value || (await write(value, held.version)).ok) return value;
      }
    },
    remove: (id, held) => store.remove(rules.kind, id, held.version),
    find: async (name, value, page) => {
      const found: T[] = [];
      for await (const one of walk(name, value, page)) found.push(one);
      return found;
    },
    walk,
  };
}

function charsOf(found: readonly FoundRecord[]): number {
  return found.reduce((chars, { value }) => chars + value.length, 0);
}
