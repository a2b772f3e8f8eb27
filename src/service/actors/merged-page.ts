import type { FindPage } from '../../store/record-store.ts';
import { compareText } from '../../store/store-text.ts';

/** Reads a page of one list. Each list is sorted by place. */
export type ReadList<T> = (page: FindPage) => Promise<T[]>;

export type Place = NonNullable<FindPage['after']>;

/** The part of the merged list to return. */
interface ListPage {
  readonly limit: number;
  readonly offset: number;
  readonly descending: boolean;
}

/**
 * A page of several sorted lists, merged into one. A deep offset costs no more than that of a store, since the items
 * before it are not read. Each round reads one item of each list: the one at the list's equal share of the items left
 * to skip. The first of these items, and all before it in its own list, lie before the page and are skipped.
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
    // No list has as many items as its share: all of them end before the page.
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
