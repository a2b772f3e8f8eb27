import type { LedgerEvent } from '../../domain/event/event.ts';
import type { IntegrityIssue } from '../../domain/event/integrity.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { SeqBounds } from './event-bounds.ts';
import { entriesWithin } from './event-chunk.ts';
import { eventJsonBytes } from './event-message.ts';
import { type EventQuery, type EventStart, isFiltered } from './event-query.ts';
import { type EventPlace, missing, readEvent } from './stored-event.ts';

/** A page ends before the event that would make its JSON larger. */
export const pageBytesMax = 2 * 1024 * 1024;
/** Upper bound of a page's JSON without its events. Integrity issues are not counted. */
const pageFrameBytes = 512;
/** A filtered page ends after examining this many events. */
const examinedMax = 10_000;
/** Or this many characters of rows: ten thousand of the largest events would take seconds of the main thread. */
const examinedCharsMax = 64 * 1024 * 1024;

interface EventWalk {
  readonly events: LedgerEvent[];
  /** Of rows that are missing or cannot be read. */
  readonly unreadable: IntegrityIssue[];
  /** Where the next page begins, in the direction of reading. null at the end. */
  readonly next: EventStart | null;
}

/** Reads the events within bounds that match a query, in its direction, as many as a page holds. */
export async function walkEvents(
  store: BoundedLedgers,
  source: EventPlace,
  query: EventQuery,
  bounds: SeqBounds,
): Promise<EventWalk> {
  const { descending, limit } = query;
  const events: LedgerEvent[] = [];
  const unreadable: IntegrityIssue[] = [];
  // Without a filter `boundsAfter` has skipped them already.
  let skip = isFiltered(query) ? query.offset : 0;
  let bytes = pageFrameBytes;
  let examined = 0;
  let examinedChars = 0;
  const wanted = isFiltered(query) ? Number.POSITIVE_INFINITY : limit + 1;
  for await (const chunk of entriesWithin(store, source, bounds, descending, wanted)) {
    unreadable.push(...chunk.missing.map(missing));
    for (const entry of chunk.entries) {
      // The next page begins here, after what was examined.
      if (examined >= examinedMax || examinedChars >= examinedCharsMax) {
        return { events, unreadable, next: { seq: entry.seq, skip } };
      }
      const wait = store.walk.whenFree();
      if (wait !== null) await wait;
      store.walk.use(1, entry.row.length);
      examined += 1;
      examinedChars += entry.row.length;
      const event = readEvent(entry, source, unreadable);
      if (event === null || !matches(event, query)) continue;
      if (skip > 0) {
        skip -= 1;
        continue;
      }
      const size = eventJsonBytes(event) + ','.length;
      if (events.length === limit || (events.length > 0 && bytes + size > pageBytesMax)) {
        return { events, unreadable, next: { seq: entry.seq, skip: 0 } };
      }
      store.walk.keep(entry.row.length);
      events.push(event);
      bytes += size;
      if (query.eventId !== null) return { events, unreadable, next: null };
    }
  }
  return { events, unreadable, next: null };
}

function matches(event: LedgerEvent, query: EventQuery): boolean {
  if (query.eventType !== null && event.eventType !== query.eventType) return false;
  return query.eventId === null || event.id === query.eventId;
}
