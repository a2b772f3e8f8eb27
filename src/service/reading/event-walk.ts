import type { LedgerEvent } from '../../domain/event.ts';
import type { IntegrityIssue } from '../../domain/integrity.ts';
import type { LedgerStore, StoredEntry } from '../../store/ledger-store.ts';
import type { SeqBounds } from './event-bounds.ts';
import type { EventQuery } from './event-query.ts';
import { type EventPlace, missing, readEvent } from './stored-event.ts';

/** A page ends before the event that would take its JSON beyond this. */
const pageBytesMax = 2 * 1024 * 1024;
/** What an event's JSON has beside its payloads. */
const eventFrameBytes = 1_100;
/** A filtered page ends after this many events examined. */
const examinedMax = 10_000;
/** Events read at once. */
const chunkEvents = 250;

export interface EventWalk {
  readonly events: LedgerEvent[];
  readonly unreadable: IntegrityIssue[];
  /** Seq at which the next page begins, in the direction of reading; null at the end. */
  readonly next: number | null;
}

/** The events within bounds that a query asks for, in its direction, as many as a page takes; what could not be read is told beside them. */
export async function walkEvents(
  store: LedgerStore,
  source: EventPlace,
  query: EventQuery,
  bounds: SeqBounds,
): Promise<EventWalk> {
  const events: LedgerEvent[] = [];
  const unreadable: IntegrityIssue[] = [];
  let skip = query.offset;
  let bytes = 0;
  let examined = 0;
  let position = query.descending ? bounds.high : bounds.low;
  const step = query.descending ? -1 : 1;
  while (position >= bounds.low && position <= bounds.high) {
    const wanted = Math.min(chunkEvents, query.limit + skip - events.length + 1);
    const chunk = await readChunk(store, source, position, Math.max(wanted, 1), query.descending, bounds, unreadable);
    for (const entry of chunk.entries) {
      if (entry.seq < bounds.low || entry.seq > bounds.high) return { events, unreadable, next: null };
      const event = readEvent(entry, source, unreadable);
      examined += 1;
      const wantedEvent = event !== null && matches(event, query);
      if (wantedEvent && skip > 0) {
        skip -= 1;
      } else if (wantedEvent) {
        const size = eventFrameBytes + Buffer.byteLength(entry.row);
        if (events.length === query.limit || (events.length > 0 && bytes + size > pageBytesMax)) {
          return { events, unreadable, next: entry.seq };
        }
        events.push(event);
        bytes += size;
        if (query.eventId !== null) return { events, unreadable, next: null };
      }
      position = entry.seq + step;
      if (examined >= examinedMax && position >= bounds.low && position <= bounds.high) {
        return { events, unreadable, next: position };
      }
    }
    if (chunk.last) break;
  }
  return { events, unreadable, next: null };
}

function matches(event: LedgerEvent, query: EventQuery): boolean {
  if (query.eventType !== null && event.eventType !== query.eventType) return false;
  return query.eventId === null || event.id === query.eventId;
}

/** Up to `count` entries from `position` on in the direction of reading; `last` when there are no more. */
async function readChunk(
  store: LedgerStore,
  source: EventPlace,
  position: number,
  count: number,
  descending: boolean,
  bounds: SeqBounds,
  unreadable: IntegrityIssue[],
): Promise<{ entries: readonly StoredEntry[]; last: boolean }> {
  if (source.scopes !== null)
    return readScopes(store, source.ledgerId, source.scopes, position, count, descending, unreadable);
  if (!descending) {
    const entries = await store.read(source.ledgerId, position, count);
    return { entries, last: entries.length < count };
  }
  const first = Math.max(bounds.low, position - count + 1);
  const entries = await store.read(source.ledgerId, first, position - first + 1);
  return { entries: entries.filter((entry) => entry.seq <= position).reverse(), last: first === bounds.low };
}

/** The same from several scopes at once, in the order of the ledger. */
async function readScopes(
  store: LedgerStore,
  ledgerId: string,
  scopes: readonly string[],
  position: number,
  count: number,
  descending: boolean,
  unreadable: IntegrityIssue[],
): Promise<{ entries: readonly StoredEntry[]; last: boolean }> {
  const pages = await Promise.all(
    scopes.map((scope) => store.readScope(ledgerId, scope, { from: position, limit: count, descending })),
  );
  const entries = pages.flatMap((page) => page.entries).sort((a, b) => (descending ? b.seq - a.seq : a.seq - b.seq));
  const found = pages.map((page) => page.entries.length + page.missing.length);
  const cut = entries.slice(0, count);
  const end = cut.at(-1)?.seq;
  for (const page of pages) {
    for (const seq of page.missing) {
      const covered = entries.length <= count || end === undefined || (descending ? seq >= end : seq <= end);
      if (covered) unreadable.push(missing(seq));
    }
  }
  return { entries: cut, last: entries.length <= count && found.every((size) => size < count) };
}
