import { mapConcurrently } from '../../runtime/collections/map-concurrently.ts';
import type { Line } from '../../store/ledger-store.ts';
import { linePages } from '../../store/pages.ts';
import { makeCursor } from '../calls/list-cursor.ts';
import { type CursorPage, listStart, tooFarInto } from '../calls/list-page.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';

/** Entries examined for one page at most. */
export const examinedMax = 20_000;
/** Entries that are looked up at once. */
const lookedUpAtOnceMax = 16;

export interface ListChunk<Entry> {
  readonly entries: readonly Entry[];
  readonly isLast: boolean;
}

interface ListWalk<Entry, Item> {
  /** What the entries are, for errors. */
  readonly what: string;
  /** In the order of the page, from its first entry on. */
  readonly chunks: AsyncIterable<ListChunk<Entry>>;
  /**
   * Where an entry stands in the list. Neighbours of one place are one item. A page after it begins behind them all.
   */
  readonly placeOf: (entry: Entry) => string;
  /** The place of an entry that was not shown: a page after it begins at the next entry. */
  readonly passedPlaceOf: (entry: Entry) => string;
  /** What the answer shows of an entry. null: it does not match, or cannot be read. */
  readonly show: (entry: Entry) => Promise<Item | null>;
  /** Whether an entry that is not shown counts for `limit` and `offset` nevertheless. */
  readonly everyEntryCounts: boolean;
}

export interface ListedPage<Item> {
  readonly items: Item[];
  readonly nextCursor: string | null;
}

/**
 * Collects a page of a list. If `examinedMax` entries do not fill it, a page after a cursor ends there, and another one
 * is refused (tooFarInto).
 */
export async function collectPage<Entry, Item extends object>(
  walk: Walk,
  list: ListWalk<Entry, Item>,
  page: CursorPage,
): Promise<ListedPage<Item>> {
  const items: Item[] = [];
  const cursorAfter = (place: string): string => makeCursor(place, page.descending);
  let toSkip = page.offset;
  let counted = 0;
  let examined = 0;
  let lastCounted = page.after;
  let beforePage = page.after;
  for await (const { entries, isLast } of list.chunks) {
    for (let at = 0; at < entries.length; at += lookedUpAtOnceMax) {
      const looked = entries.slice(at, at + lookedUpAtOnceMax).filter((entry) => list.placeOf(entry) !== lastCounted);
      if (looked.length === 0) continue;
      const shown = counted === page.limit ? [] : await mapConcurrently(looked, lookedUpAtOnceMax, list.show);
      for (const [index, entry] of looked.entries()) {
        const place = list.placeOf(entry);
        if (place === lastCounted) continue;
        if (counted === page.limit) return { items, nextCursor: cursorAfter(lastCounted ?? place) };
        const item = shown[index] ?? null;
        if (item === null && !list.everyEntryCounts) {
          if (counted === 0) beforePage = list.passedPlaceOf(entry);
          continue;
        }
        lastCounted = place;
        if (toSkip > 0) {
          toSkip -= 1;
          beforePage = place;
          continue;
        }
        counted += 1;
        if (item === null) continue;
        walk.keep(JSON.stringify(item).length);
        items.push(item);
      }
    }
    if (isLast) break;
    examined += entries.length;
    if (examined < examinedMax) continue;
    if (counted === page.limit && lastCounted !== null) return { items, nextCursor: cursorAfter(lastCounted) };
    if (!page.byCursor) {
      const ownCursor = toSkip > 0 ? undefined : cursorAfter(beforePage ?? listStart);
      throw tooFarInto(list.what, examinedMax, ownCursor);
    }
    return { items, nextCursor: cursorAfter(list.passedPlaceOf(entries.at(-1) as Entry)) };
  }
  return { items, nextCursor: null };
}

/** Orders of lines, both inclusive. null: no bound. */
export interface OrderBounds {
  readonly low: string | null;
  readonly high: string | null;
}

/** The lines of a list within bounds, without the first `offset` ones in the order of reading. */
export async function* linesWithin(
  store: BoundedLedgers,
  list: string,
  { low, high }: OrderBounds,
  { atOnce, descending, offset }: { readonly atOnce: number; readonly descending: boolean; readonly offset: number },
): AsyncGenerator<ListChunk<Line>, void> {
  const from = descending ? high : low;
  const start = from === null ? { offset } : { from, offset };
  for await (const { lines, isLast } of linePages(store, list, atOnce, descending, start)) {
    const within = lines.filter(({ order }) => (low === null || order >= low) && (high === null || order <= high));
    const ended = isLast || within.length < lines.length;
    yield { entries: within, isLast: ended };
    if (ended) return;
  }
}
