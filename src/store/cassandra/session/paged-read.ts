import { LedgerError } from '../../../domain/errors.ts';
import type { Row } from './session.ts';
import type { TextRoom } from './text-room.ts';

/** Time limit for the further pages of a read, ms. The largest reads take seconds. */
const pagesMaxMs = 60_000;

interface Page {
  readonly rows: readonly Row[];
  readonly pageState?: string | null;
}

/**
 * Returns the rows of all pages of a read, or of the pages until `room` is full. Throws LedgerError `unavailable` if
 * there are more pages once the time is over: a server may name a next page for ever.
 */
export async function readPages(pageAt: (pageState?: string) => Promise<Page>, room?: TextRoom): Promise<Row[]> {
  const rows: Row[] = [];
  let isOver = false;
  let timer: NodeJS.Timeout | undefined;
  try {
    for (let place: string | undefined; ; ) {
      const page = await pageAt(place);
      for (const row of page.rows) rows.push(row);
      if (page.pageState === null || page.pageState === undefined || room?.isFull) return rows;
      if (isOver) throw new LedgerError('unavailable', 'The store does not come to the end of an answer.');
      timer ??= setTimeout(() => {
        isOver = true;
      }, pagesMaxMs);
      place = page.pageState;
    }
  } finally {
    clearTimeout(timer);
  }
}
