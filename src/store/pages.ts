import type { LedgerStore, Line, Page } from './ledger-store.ts';

/** Most characters of a page without its last entry. Such a page costs some milliseconds of the main thread. */
export const pageCharsMax = 1024 * 1024;

/** Number of entries to read first when sizes are known only after reading. */
const firstPart = 8;

/**
 * How many entries of a page to read next: as many as fit into `charsMax` by the average so far, at least one, at most
 * four times as many as were read, and at most `most`. `read` entries with `chars` characters were read already. It
 * spares the store entries that the page has no room for. The bound of the page is kept by the read itself.
 */
export function nextPart(most: number, read: number, chars: number, charsMax: number): number {
  if (read === 0) return Math.min(most, firstPart);
  const fitting = Math.floor(((charsMax - chars) * read) / Math.max(1, chars));
  return Math.max(1, Math.min(most, 4 * read, fitting));
}

/** The characters of a page, as `charsMax` counts them. */
export function charsOf(page: readonly ({ readonly value: string } | { readonly row: string })[]): number {
  let chars = 0;
  for (const entry of page) chars += 'row' in entry ? entry.row.length : entry.value.length;
  return chars;
}

export interface LinesOfLists {
  lines(list: string, page: Page & { readonly charsMax: number }): ReturnType<LedgerStore['lines']>;
}

/**
 * Yields a list in pages of at most `atOnce` lines and about `pageCharsMax` characters. A page is read when the
 * consumer asks for it. `isLast` says that no more lines follow.
 */
export async function* linePages(
  store: LinesOfLists,
  list: string,
  atOnce: number,
  descending = false,
  start: Pick<Page, 'from' | 'offset'> = {},
): AsyncGenerator<{ readonly lines: readonly Line[]; readonly isLast: boolean }, void> {
  let place = start;
  for (;;) {
    const lines = await store.lines(list, { limit: atOnce, descending, charsMax: pageCharsMax, ...place });
    const isLast = lines.length < atOnce && charsOf(lines) < pageCharsMax;
    yield { lines, isLast };
    const last = lines.at(-1);
    if (isLast || last === undefined) return;
    place = { from: last.order, offset: 1 };
  }
}

/** Up to `limit` lines of a list, read in pages. */
export async function linesOf(
  store: LinesOfLists,
  list: string,
  { limit, descending, ...start }: Omit<Page, 'charsMax'>,
): Promise<readonly Line[]> {
  const found: Line[] = [];
  for await (const { lines } of linePages(store, list, limit, descending, start)) {
    found.push(...lines);
    if (found.length >= limit) break;
  }
  return found.slice(0, limit);
}
