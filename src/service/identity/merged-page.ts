import type { FindPage } from '../../store/record-store.ts';
import { compareText } from '../../store/store-text.ts';

/** One of the lists, sorted by place, as a record store finds it. */
export type ReadList<T> = (page: FindPage) => Promise<T[]>;

export type Place = NonNullable<FindPage['after']>;

/** Which part of the lists taken for one is read. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
  readonly descending: boolean;
}

/**
 * A page of several sorted lists as if they were one. A deep offset costs what a store's own does, not the reading of all that lies
 * before it: of each list the item is looked at that is its share of what is left to skip; the lists' first of these, and what lies
 * before it in its own list, is among what is skipped.
 */
export async function mergedPage<T>(
  lists: readonly ReadList<T>[],
  placeOf: (item: T) => Place,
  { limit, offset, descending }: ListPage,
): Promise<T[]> {
  const compare = (a: T, b: T): number => {
    const [one, other] = descending ? [placeOf(b), placeOf(a)] : [placeOf(a), placeOf(b)];
    return compareText(one.order, other.order) || compareText(one.id, other.id);
  };
  const behind = lists.map((): Pick<FindPage, 'after' | 'descending'> => ({ descending }));
  const readAll = (page: { readonly limit: number; readonly offset: number }): Promise<T[][]> =>
    Promise.all(lists.map((read, at) => read({ ...behind[at], ...page })));

  let skip = offset;
  while (skip > limit) {
    const share = Math.max(1, Math.floor(skip / lists.length));
    const looked = await readAll({ limit: 1, offset: share - 1 });
    const [first] = looked
      .flatMap((found, at) => found.map((item) => ({ item, at })))
      .sort((a, b) => compare(a.item, b.item));
    // No list has as much as its share: all of them together end before the page.
    if (first === undefined) return [];
    behind[first.at] = { descending, after: placeOf(first.item) };
    skip -= share;
  }
  const rest = await readAll({ limit: skip + limit, offset: 0 });
  return rest
    .flat()
    .sort(compare)
    .slice(skip, skip + limit);
}
