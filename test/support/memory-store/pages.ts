import { charsOf } from '../../../src/store/pages.ts';

/** Which part of a sorted list to take. */
interface Part<T> {
  /** Whether the item is at or after the start, in the direction of reading. */
  readonly startsAt: (item: T) => boolean;
  readonly limit: number;
  readonly offset?: number | undefined;
  readonly descending?: boolean | undefined;
}

/** Returns a part of `ascending`, which must be sorted. */
export function partOf<T>(ascending: readonly T[], { startsAt, limit, offset = 0, descending = false }: Part<T>): T[] {
  const inOrder = descending ? ascending.toReversed() : ascending;
  return inOrder.filter(startsAt).slice(offset, offset + limit);
}

/** Returns the page up to and including the entry at which it reaches `charsMax` characters. */
export function cutBehind<T extends { readonly value: string } | { readonly row: string }>(
  page: readonly T[],
  charsMax = Number.POSITIVE_INFINITY,
): T[] {
  let chars = 0;
  const end = page.findIndex((entry) => {
    chars += charsOf([entry]);
    return chars >= charsMax;
  });
  return end === -1 ? [...page] : page.slice(0, end + 1);
}
