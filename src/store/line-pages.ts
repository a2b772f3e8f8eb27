import type { LedgerStore, Line } from './ledger-store.ts';

/**
 * A list in pages of `atOnce` lines, each read when it is asked for, behind the last line of the one before. The last page is the one
 * that is not full.
 */
export async function* linePages(
  store: Pick<LedgerStore, 'lines'>,
  list: string,
  atOnce: number,
  descending = false,
): AsyncGenerator<readonly Line[], void> {
  let from: string | undefined;
  for (;;) {
    const page = { limit: atOnce, descending, ...(from === undefined ? {} : { from, offset: 1 }) };
    const lines = await store.lines(list, page);
    yield lines;
    if (lines.length < atOnce) return;
    from = lines.at(-1)?.order;
  }
}
