import type { FindPage, Lookup, RecordStore } from '../../store/record-store.ts';
import type { Walk } from '../walking/walk.ts';
import { walkRecords } from '../walking/walk-records.ts';
import { decodeForm, decodeRecord, type RecordForm } from './record-form.ts';

/** A record as read, with the version that a change replaces. */
interface Held<T> {
  readonly version: string;
  readonly value: T;
}

/** How values of one kind are stored: their id, look-ups and expiry. */
export interface CollectionRules<T> extends RecordForm<T> {
  id(value: T): string;
  lookups(value: T): Lookup[];
  expiresAt?(value: T): number;
}

export interface Collection<T> {
  /**
   * Returns null if there is no record with this id. Throws UnreadableRecord if the record is damaged; lists skip
   * damaged records.
   */
  get(id: string): Promise<Held<T> | null>;
  /** Returns false, and writes nothing, if a record with this id exists. */
  create(value: T): Promise<boolean>;
  /** Returns false, and writes nothing, if the record was changed since it was read. */
  replace(held: Held<T>, value: T): Promise<boolean>;
  /**
   * Reads, changes and writes, and retries while another change comes between. `change` may throw to refuse. Returns
   * the new value, or null if there is no such record.
   */
  update(id: string, change: (value: T) => T): Promise<T | null>;
  remove(id: string, held: Held<T>): Promise<boolean>;
  /** The first value in the order of the look-up. null if there is none. */
  first(name: string, value: string): Promise<T | null>;
  find(walk: Walk, name: string, value: string, page: FindPage): Promise<T[]>;
  /** The same one by one, for callers that keep few of the values. Only a part of the list is in memory at a time. */
  walk(walk: Walk, name: string, value: string, page: FindPage): AsyncGenerator<T>;
}

/**
 * Values of one type as JSON records. `get` and `first` throw UnreadableRecord if the record is damaged; lists skip it.
 */
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
  const walked = (walk: Walk, name: string, value: string, page: FindPage) =>
    walkRecords(walk, store, rules.kind, { name, value }, page, (record) => decodeForm(record, rules));

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
    first: async (name, value) => {
      const [first] = await store.find(rules.kind, { name, value }, { limit: 1 });
      return first === undefined ? null : decodeRecord(first, rules);
    },
    find: async (walk, name, value, page) => {
      const found: T[] = [];
      for await (const one of walked(walk, name, value, page)) {
        walk.keep(one.record.value.length);
        found.push(one.value);
      }
      return found;
    },
    walk: async function* (walk, name, value, page) {
      for await (const one of walked(walk, name, value, page)) yield one.value;
    },
  };
}
