import { LedgerError } from '../domain/errors.ts';
import type { LedgerEvent } from '../domain/event.ts';
import { checkChain, type IntegrityIssue, type Range } from '../domain/integrity.ts';
import { CorruptRow, parseRow } from '../domain/row.ts';
import { isoTime } from '../domain/time.ts';
import { uuidV7Time } from '../domain/uuid.ts';
import type { LedgerStore, StoredEntry } from '../store/ledger-store.ts';
import { type EventQuery, makeCursor } from './event-query.ts';
import type { SealCheck } from './seal-check.ts';

/** A page ends before the event that would take its JSON beyond this. */
const pageBytesMax = 2 * 1024 * 1024;
/** What an event's JSON has beside its payloads. */
const eventFrameBytes = 1_100;
/** A filtered page ends after this many events examined. */
const examinedMax = 10_000;
/** Events read at once. */
const chunkEvents = 250;

/** Which events to read: the whole ledger, or those that stand under scopes (a master, a delegation, a segment). */
export interface EventSource {
  readonly ledgerId: string;
  /** null: the ledger itself. */
  readonly scopes: readonly string[] | null;
  /** How the events hang together where nothing is filtered out. */
  readonly kind: 'ledger' | 'master' | 'segment';
}

export interface EventPage {
  /** In the order asked for. */
  readonly events: readonly LedgerEvent[];
  readonly issues: readonly IntegrityIssue[];
  readonly nextCursor: string | null;
}

/** Reads a page of events and checks it, from what is stored and on this read alone (decisions.md, sections 3 and 6). */
export async function readEventPage(
  store: LedgerStore,
  seals: SealCheck,
  source: EventSource,
  query: EventQuery,
): Promise<EventPage> {
  const head = await store.head(source.ledgerId);
  if (head === null) return { events: [], issues: [], nextCursor: null };
  const bounds = await seqBounds(store, source.ledgerId, head.seq, query);
  const walk = await collect(store, source, query, bounds);
  const ascending = query.descending ? walk.events.toReversed() : walk.events;
  const unfiltered = query.eventType === null && query.eventId === null && query.from === null && query.to === null;
  const issues = [...walk.unreadable];
  issues.push(...(await chainIssues(store, source, ascending, unfiltered)));
  issues.push(...edgeIssues(source, ascending, unfiltered, query, bounds, walk.next, head));
  issues.push(...(await seals.check(ascending, query.verifySignatures)));
  const nextCursor = walk.next === null ? null : makeCursor(walk.next, query.descending);
  return { events: showable(walk.events, issues), issues, nextCursor };
}

/** Without events whose payload was damaged so that it is no JSON any more: it could not stand in an answer. */
function showable(events: readonly LedgerEvent[], issues: readonly IntegrityIssue[]): readonly LedgerEvent[] {
  const damaged = new Set(issues.filter((issue) => issue.type === 'hash_mismatch').map((issue) => issue.eventId));
  if (damaged.size === 0) return events;
  return events.filter(
    (event) => !damaged.has(event.id) || (isJson(event.payload) && isJson(event.actorSigPayload ?? '{}')),
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

interface Bounds {
  readonly low: number;
  readonly high: number;
}

/** The seqs that can answer the query. Times are found by bisection: created_at never goes back within a ledger. */
async function seqBounds(store: LedgerStore, ledgerId: string, headSeq: number, query: EventQuery): Promise<Bounds> {
  let low = query.fromSeq ?? 0;
  let high = headSeq;
  let from = query.from;
  let to = query.to;
  const idTime = query.eventId === null ? null : uuidV7Time(query.eventId);
  if (query.eventId !== null) {
    // An event's id carries its created_at, so that an event is found by its id without an index.
    if (idTime === null) return { low: 0, high: -1 };
    const at = isoTime(idTime);
    from = from === null || at > from ? at : from;
    to = to === null || at < to ? at : to;
  }
  if (from !== null)
    low = Math.max(low, await firstSeqAt(store, ledgerId, headSeq, (createdAt) => createdAt >= (from as string)));
  if (to !== null)
    high = Math.min(high, (await firstSeqAt(store, ledgerId, headSeq, (createdAt) => createdAt > (to as string))) - 1);
  if (query.startSeq !== null) {
    if (query.descending) high = Math.min(high, query.startSeq);
    else low = Math.max(low, query.startSeq);
  }
  return { low, high };
}

/** The first seq whose created_at satisfies a condition that holds from some seq on; headSeq + 1 if none does. */
async function firstSeqAt(
  store: LedgerStore,
  ledgerId: string,
  headSeq: number,
  condition: (createdAt: string) => boolean,
): Promise<number> {
  let low = 0;
  let high = headSeq + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // A missing or damaged event reads as the next one that tells its time; both sides stay right.
    const told = (await store.read(ledgerId, middle, readableWithinEvents)).map(timeOf).find((time) => time !== null);
    if (told === undefined || condition(told.createdAt)) high = middle;
    else low = told.seq + 1;
  }
  return low;
}

/** How far behind a damaged event one is looked for that tells its time. */
const readableWithinEvents = 8;

function timeOf(entry: StoredEntry): { readonly seq: number; readonly createdAt: string } | null {
  try {
    return { seq: entry.seq, createdAt: parseRow(entry.row).createdAt };
  } catch (error) {
    if (error instanceof CorruptRow) return null;
    throw error;
  }
}

interface Walk {
  readonly events: LedgerEvent[];
  readonly unreadable: IntegrityIssue[];
  /** Seq at which the next page begins, in the direction of reading; null at the end. */
  readonly next: number | null;
}

async function collect(store: LedgerStore, source: EventSource, query: EventQuery, bounds: Bounds): Promise<Walk> {
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
  source: EventSource,
  position: number,
  count: number,
  descending: boolean,
  bounds: Bounds,
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

/** null, and an issue, for a row that cannot be read or shown any more. */
function readEvent(entry: StoredEntry, source: EventSource, issues: IntegrityIssue[]): LedgerEvent | null {
  try {
    const event = parseRow(entry.row);
    if (event.seq === entry.seq && event.ledgerId === source.ledgerId) return event;
    issues.push({
      eventId: event.id,
      type: 'hash_mismatch',
      detail: `the event stored at seq ${entry.seq} belongs elsewhere`,
    });
    return null;
  } catch (error) {
    if (error instanceof LedgerError) throw error;
    issues.push({
      eventId: noEvent,
      type: 'hash_mismatch',
      detail: `what is stored at seq ${entry.seq} is no event any more`,
    });
    return null;
  }
}

const noEvent = '00000000-0000-0000-0000-000000000000';

function missing(seq: number): IntegrityIssue {
  return { eventId: noEvent, type: 'missing_event', detail: `the event at seq ${seq} is missing` };
}

async function chainIssues(
  store: LedgerStore,
  source: EventSource,
  ascending: readonly LedgerEvent[],
  unfiltered: boolean,
): Promise<IntegrityIssue[]> {
  const first = ascending[0];
  if (first === undefined) return [];
  if (!unfiltered || source.kind === 'segment') return checkChain(ascending, { kind: 'segment' });
  const range: Range = { kind: source.kind, before: await eventBefore(store, source, first) };
  return checkChain(ascending, range);
}

/** The event that stands before the first one of a page, so that its link is checked too. */
async function eventBefore(store: LedgerStore, source: EventSource, first: LedgerEvent): Promise<LedgerEvent | null> {
  if (first.seq === 0) return null;
  const [scope] = source.scopes ?? [];
  const entries =
    scope === undefined
      ? await store.read(source.ledgerId, first.seq - 1, 1)
      : (await store.readScope(source.ledgerId, scope, { from: first.seq - 1, limit: 1, descending: true })).entries;
  const entry = entries[0];
  if (entry === undefined || entry.seq >= first.seq) return null;
  return readEvent(entry, source, []);
}

/** What is missing at the ends of a page that should reach them, and whether the newest event is the head. */
function edgeIssues(
  source: EventSource,
  ascending: readonly LedgerEvent[],
  unfiltered: boolean,
  query: EventQuery,
  bounds: Bounds,
  next: number | null,
  head: { readonly seq: number; readonly hash: string },
): IntegrityIssue[] {
  const issues: IntegrityIssue[] = [];
  const newest = ascending.at(-1);
  if (newest?.seq === head.seq && newest.hash !== head.hash) {
    issues.push({
      eventId: newest.id,
      type: 'broken_link',
      detail: 'the newest event is not the one that the ledger ends in',
    });
  }
  if (source.kind !== 'ledger' || !unfiltered || query.offset > 0) return issues;
  const oldest = ascending[0];
  const expectedLow = query.descending && next !== null ? next + 1 : bounds.low;
  const expectedHigh = !query.descending && next !== null ? next - 1 : bounds.high;
  if (expectedLow > expectedHigh) return issues;
  if (oldest === undefined || oldest.seq > expectedLow)
    issues.push({ ...missing(expectedLow), eventId: oldest?.id ?? noEvent });
  if (newest !== undefined && newest.seq < expectedHigh)
    issues.push({ ...missing(newest.seq + 1), eventId: newest.id });
  return issues;
}
