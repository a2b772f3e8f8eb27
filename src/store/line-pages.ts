import type { LedgerStore, Line, Page } from './ledger-store.ts';
import { charsOf, pageCharsMax } from './page-size.ts';

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

/** Returns up to `limit` lines of a list in one array. Reads them in pages. */
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
