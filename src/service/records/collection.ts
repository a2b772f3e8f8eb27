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
  /** Unix time, ms. undefined: never. */
  expiresAt?(value: T): number | undefined;
}

export type Collection<T> = ReturnType<typeof collection<T>>;

/**
 * Values of one type as JSON records. `get` and `first` throw UnreadableRecord if the record is damaged; lists skip it.
 */
export function collection<T>(store: RecordStore, rules: CollectionRules<T>) {
  const write = (value: T, replaces: string) => {
    const expiresAt = rules.expiresAt?.(value);
    return store.put({
      kind: rules.kind,
      id: rules.id(value),
      replaces,
      value: JSON.stringify(value),
      lookups: rules.lookups(value),
      ...(expiresAt === undefined ? {} : { expiresAt }),
    });
  };
  const get = async (id: string): Promise<Held<T> | null> => {
    const record = await store.get(rules.kind, id);
    return record === null ? null : { version: record.version, value: decodeRecord(record, rules) };
  };
  const walked = (walk: Walk, name: string, value: string, page: FindPage) =>
    walkRecords(walk, store, rules.kind, { name, value }, page, (record) => decodeForm(record, rules));

  return {
    /** Returns null if there is no record with this id. */
    get,
    /** Returns false, and writes nothing, if a record with this id exists. */
    create: async (value: T): Promise<boolean> => (await write(value, 'absent')).ok,
    /** Returns false, and writes nothing, if the record was changed since it was read. */
    replace: async (held: Held<T>, value: T): Promise<boolean> => (await write(value, held.version)).ok,
    /**
     * Reads, changes and writes, and retries while another change comes between. `change` may throw to refuse. Returns
     * the new value, or null if there is no such record.
     */
    update: async (id: string, change: (value: T) => T): Promise<T | null> => {
      for (;;) {
        const held = await get(id);
        if (held === null) return null;
        const value = change(held.value);
        if (value === held.value || (await write(value, held.version)).ok) return value;
      }
    },
    /** The first value in the order of the look-up. null if there is none. */
    first: async (name: string, value: string): Promise<T | null> => {
      const [first] = await store.find(rules.kind, { name, value }, { limit: 1 });
      return first === undefined ? null : decodeRecord(first, rules);
    },
    find: async (walk: Walk, name: string, value: string, page: FindPage): Promise<T[]> => {
      const found: T[] = [];
      for await (const one of walked(walk, name, value, page)) {
        walk.keep(one.record.value.length);
        found.push(one.value);
      }
      return found;
    },
    /** The same one by one, for callers that keep few of the values. Only a part of the list is in memory at a time. */
    walk: async function* (walk: Walk, name: string, value: string, page: FindPage): AsyncGenerator<T> {
      for await (const one of walked(walk, name, value, page)) yield one.value;
    },
  };
}
