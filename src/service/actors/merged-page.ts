import type { FindPage } from '../../store/record-store.ts';
import { compareText } from '../../store/store-text.ts';

/** Reads a list, which is sorted by place. */
export type ReadList<T> = (page: FindPage) => AsyncGenerator<T>;

export type Place = NonNullable<FindPage['after']>;

/** Items of one list that are skipped at once. */
const stepMax = 1_000;
/** So few items are read instead of skipped: stores read about so many records at once. */
const readMax = 24;

/**
 * A page of several sorted lists, merged into one. The items before the page are not read: of the items that lie one
 * step ahead in each list, the first one and all before it in its list lie before the page, since the steps of all
 * lists together are no more than what is left to skip.
 */
export async function mergedPage<T>(
  lists: readonly ReadList<T>[],
  placeOf: (item: T) => Place,
  page: { readonly limit: number; readonly offset: number; readonly descending: boolean },
): Promise<T[]> {
  const { limit, offset, descending } = page;
  const behind = lists.map((): Pick<FindPage, 'after' | 'descending'> => ({ descending }));
  const read = (at: number, part: { readonly limit: number; readonly offset?: number }) =>
    (lists[at] as ReadList<T>)({ ...behind[at], ...part });
  const isBefore = (item: T, other: T): boolean => {
    const [one, two] = [placeOf(item), placeOf(other)];
    const order = compareText(one.order, two.order) || compareText(one.id, two.id);
    return descending ? order > 0 : order < 0;
  };
  /** The index of the list whose item is first. -1 if there are no items. */
  const firstOf = (items: readonly (T | undefined)[]): number =>
    items.reduce((first, item, at) => {
      const other = items[first];
      return item !== undefined && (other === undefined || isBefore(item, other)) ? at : first;
    }, -1);

  let left = offset;
  let step = 0;
  let ahead: (Promise<T | undefined> | null)[] = [];
  while (left > readMax) {
    const next = Math.min(stepMax, Math.max(1, Math.floor(left / lists.length)));
    if (next !== step) ahead = lists.map(() => null);
    step = next;
    const items = await Promise.all(
      lists.map((_, at) => (ahead[at] ??= one(read(at, { limit: 1, offset: step - 1 })))),
    );
    const first = firstOf(items);
    const item = items[first];
    // Every list ends within a step, before the page.
    if (item === undefined) return [];
    behind[first] = { descending, after: placeOf(item) };
    ahead[first] = null;
    left -= step;
  }

  const readers = lists.map((_, at) => read(at, { limit: left + limit }));
  const heads = await Promise.all(readers.map(one));
  const merged: T[] = [];
  while (merged.length < left + limit) {
    const first = firstOf(heads);
    const item = heads[first];
    if (item === undefined) break;
    merged.push(item);
    heads[first] = await one(readers[first] as AsyncGenerator<T>);
  }
  return merged.slice(left);
}

async function one<T>(reader: AsyncGenerator<T>): Promise<T | undefined> {
  const { done, value } = await reader.next();
  return done ? undefined : value;
}
