import { charsOf } from '../page-size.ts';

/** A part of a sorted list: from a place on, in either direction, skipping some, at most so many. */
export interface Part<T> {
  /** Whether the item lies at or behind the place to start from, given the direction of reading. */
  readonly startsAt: (item: T) => boolean;
  readonly limit: number;
  readonly offset?: number | undefined;
  readonly descending?: boolean | undefined;
}

/** `ascending` is sorted already. */
export function partOf<T>(ascending: readonly T[], { startsAt, limit, offset = 0, descending = false }: Part<T>): T[] {
  const inOrder = descending ? ascending.toReversed() : ascending;
  return inOrder.filter(startsAt).slice(offset, offset + limit);
}

/** What of a page comes up to the entry with which it has at least `charsMax` characters. */
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
