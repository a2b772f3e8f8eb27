import { LedgerError } from '../../../domain/errors.ts';
import type { Row } from './session.ts';

/** Time limit for a whole read, ms. The largest ones take seconds. */
const readMaxMs = 60_000;

interface Page {
  readonly rows: readonly Row[];
  readonly pageState?: string | null;
}

/**
 * Returns the rows of all pages of a read. Throws LedgerError `unavailable` if there are more pages once the time is
 * over: a server may name a next page for ever.
 */
export async function readPages(
  pageAt: (pageState: string | undefined) => Promise<Page>,
  monotonicMs: () => number = () => performance.now(),
): Promise<Row[]> {
  const endMs = monotonicMs() + readMaxMs;
  const rows: Row[] = [];
  for (let place: string | undefined; ; ) {
    const page = await pageAt(place);
    for (const row of page.rows) rows.push(row);
    if (page.pageState === null || page.pageState === undefined) return rows;
    if (monotonicMs() > endMs)
      throw new LedgerError('unavailable', 'The store does not come to the end of an answer.', {}, new Error('pages'));
    place = page.pageState;
  }
}
