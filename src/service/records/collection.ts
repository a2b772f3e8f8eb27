import { checkNotEnded, type KeyedMutex } from '../../store/keyed-mutex.ts';
import { charsOf, pageCharsMax } from '../../store/pages.ts';
import type { FindPage, Lookup, RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver } from '../../store/unreadable-record.ts';
import { boundedRecords } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';
import { decodeForm, decodeRecord, type RecordForm } from './record-form.ts';

/** Records of a list that are read, and in memory, at once, unless a caller says otherwise. */
const readAtOnceMax = 24;

/** A record as read, with the version that a change replaces. */
export interface Held<T> {
  readonly version: string;
  readonly value: T;
  /** Length of its text. */
  readonly chars: number;
}

/**
 * `first`: the change waits for one change that is `in turn` at most, however many there are, and is never
 * `overloaded`. Its caller sees to it that such changes are few.
 */
export type ChangeOrder = 'in turn' | 'first';

/** How values of one kind are stored: their id, look-ups and expiry. */
export interface CollectionRules<T> extends RecordForm<T> {
  id(value: T): string;
  lookups(value: T): Lookup[];
  /** Unix time, ms. undefined: never. */
  expiresAt?(value: T): number | undefined;
}

export type Collection<T> = ReturnType<typeof collection<T>>;
export type ChangingCollection<T> = ReturnType<typeof changingCollection<T>>;

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
  const get = async (id: string, known?: Held<T>): Promise<Held<T> | null> => {
    const record = await store.get(rules.kind, id);
    if (record === null) return null;
    const { version, value } = record;
    return version === known?.version ? known : { version, value: decodeRecord(record, rules), chars: value.length };
  };
  /** Records that cannot be read are skipped, and others take their places on the page. */
  async function* walked(
    walk: Walk,
    name: string,
    value: string,
    page: Omit<FindPage, 'charsMax'>,
    atOnceMax = readAtOnceMax,
  ) {
    const records = boundedRecords(walk, store);
    let behind: Omit<FindPage, 'limit'> = page;
    for (let left = page.limit; left > 0; ) {
      const limit = Math.min(left, atOnceMax);
      const found = await records.find(rules.kind, { name, value }, { ...behind, limit, charsMax: pageCharsMax });
      for (const record of found) {
        const wait = walk.whenFree();
        if (wait !== null) await wait;
        walk.use(0, record.value.length);
        const one = decodeOrPassOver(record, () => decodeForm(record, rules));
        if (one === undefined) continue;
        left -= 1;
        yield { value: one, chars: record.value.length };
      }
      const last = found.at(-1);
      if (last === undefined || (found.length < limit && charsOf(found) < pageCharsMax)) return;
      behind = { ...page, offset: 0, after: last };
    }
  }

  return {
    /** Returns null if there is no record with this id; `known` itself, not parsed again, if it has not changed. */
    get,
    /** Returns false, and writes nothing, if a record with this id exists. */
    create: async (value: T): Promise<boolean> => (await write(value, 'absent')).ok,
    /** Returns false, and writes nothing, if the record was changed since it was read. */
    replace: async (held: Pick<Held<T>, 'version'>, value: T): Promise<boolean> =>
      (await write(value, held.version)).ok,
    /** The first value in the order of the look-up. null if there is none. */
    first: async (name: string, value: string): Promise<T | null> => {
      const [first] = await store.find(rules.kind, { name, value }, { limit: 1 });
      return first === undefined ? null : decodeRecord(first, rules);
    },
    find: async (walk: Walk, name: string, value: string, page: FindPage, atOnceMax?: number): Promise<T[]> => {
      const found: T[] = [];
      for await (const one of walked(walk, name, value, page, atOnceMax)) {
        walk.keep(one.chars);
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

/** The same with changes of a record. `changes`: all that change records of this kind on a node share it. */
export function changingCollection<T>(store: RecordStore, rules: CollectionRules<T>, changes: KeyedMutex) {
  const values = collection(store, rules);
  return {
    ...values,
    /**
     * Reads, changes and writes, and retries while a change of another node comes between. `change` may throw to
     * refuse. Returns the new value, or null if there is no such record. Throws `overloaded` if too many changes of
     * the record wait, and `unavailable` if `signal`, that of the call, aborts before the write begins. null: the
     * change is carried out whether or not the call ends.
     */
    update: (
      id: string,
      change: (value: T) => T,
      signal: AbortSignal | null,
      order: ChangeOrder = 'in turn',
    ): Promise<T | null> => {
      const isFirst = order === 'first';
      const options = { signal: signal ?? undefined, isUnbounded: isFirst || signal === null };
      const run = async (): Promise<T | null> => {
        for (;;) {
          const held = await values.get(id);
          if (held === null) return null;
          const value = change(held.value);
          if (value === held.value) return value;
          checkNotEnded(options.signal);
          if (await values.replace(held, value)) return value;
        }
      };
      return changes.take(`${rules.kind}/${id}`, isFirst ? 'rare' : 'write', run, options);
    },
  };
}
