import type { LedgerEvent } from '../../domain/event/event.ts';
import { chainCheck, type IntegrityIssue, type Range } from '../../domain/event/integrity.ts';
import type { Head } from '../../store/ledger-store.ts';
import { pageCharsMax } from '../../store/pages.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import { boundsAfter, type SeqBounds, seqBounds } from './event-bounds.ts';
import { eventMessage } from './event-message.ts';
import { type EventQuery, type EventStart, isFiltered, makeEventCursor } from './event-query.ts';
import { walkEvents } from './event-walk.ts';
import type { SealCheck } from './seal-check.ts';
import { type EventPlace, missing, noEvent, readEvent } from './stored-event.ts';

/** The events to read: those of a whole ledger, or those of scopes (a master, a delegation, a segment). */
export interface EventSource extends EventPlace {
  /** How the events are chained if none is filtered out. */
  readonly kind: 'ledger' | 'master' | 'segment';
}

export interface EventPage {
  readonly events: readonly LedgerEvent[];
  readonly issues: readonly IntegrityIssue[];
  readonly nextCursor: string | null;
  /** Where the cursor goes on. null at the end. */
  readonly next: EventStart | null;
}

/** The members that the answer of every event list has. */
export function eventPageMessage({ events, issues, nextCursor }: Omit<EventPage, 'next'>) {
  return {
    count: events.length,
    integrity: integrityMessage(issues),
    events: events.map(eventMessage),
    ...(nextCursor === null ? {} : { nextCursor }),
  };
}

export function integrityMessage(issues: readonly IntegrityIssue[]) {
  return {
    verified: issues.length === 0,
    issues: issues.map(({ eventId, type, detail }) => ({ eventId, type, detail })),
  };
}

/** Reads a page of events and checks their integrity, from what is stored now: nothing is cached. */
export async function readEventPage(
  store: BoundedLedgers,
  seals: SealCheck,
  source: EventSource,
  query: EventQuery,
): Promise<EventPage> {
  const head = await store.head(source.ledgerId);
  if (head === null) return { events: [], issues: [], nextCursor: null, next: null };
  const all = await seqBounds(store, source.ledgerId, head.seq, query);
  const skip = isFiltered(query) ? 0 : query.offset;
  const bounds = await boundsAfter(store, source, all, skip, query.descending);
  const walk = await walkEvents(store, source, query, bounds);
  const ascending = query.descending ? walk.events.toReversed() : walk.events;
  const unfiltered = !isFiltered(query) && query.from === null && query.to === null;
  const issues = [...walk.unreadable];
  issues.push(...(await chainIssues(store, source, ascending, unfiltered)));
  issues.push(...headIssues(ascending.at(-1), head));
  if (source.kind === 'ledger' && unfiltered)
    issues.push(...edgeIssues(ascending, query.descending, bounds, walk.next));
  issues.push(...(await seals(store.walk, ascending, query.verifySignatures)));
  const nextCursor = walk.next === null ? null : makeEventCursor(walk.next, query.descending);
  return { events: showable(walk.events, issues), issues, nextCursor, next: walk.next };
}

/** Leaves out events with a damaged payload that is no JSON any more: an answer could not hold them. */
function showable(events: readonly LedgerEvent[], issues: readonly IntegrityIssue[]): readonly LedgerEvent[] {
  const damaged = new Set(issues.filter((issue) => issue.type === 'hash_mismatch').map((issue) => issue.eventId));
  return events.filter((event) => !damaged.has(event.id) || isJson(event));
}

/** Whether an answer can hold the event: JSON text is embedded as it is. */
export function isJson({ payload, actorSigPayload }: LedgerEvent): boolean {
  try {
    JSON.parse(payload);
    JSON.parse(actorSigPayload ?? '{}');
    return true;
  } catch {
    return false;
  }
}

async function chainIssues(
  store: BoundedLedgers,
  source: EventSource,
  ascending: readonly LedgerEvent[],
  unfiltered: boolean,
): Promise<IntegrityIssue[]> {
  const first = ascending[0];
  if (first === undefined) return [];
  const range: Range =
    !unfiltered || source.kind === 'segment'
      ? { kind: 'segment' }
      : { kind: source.kind, before: await eventBefore(store, source, first) };
  const issues: IntegrityIssue[] = [];
  const check = chainCheck(range, issues);
  for (const event of ascending) {
    const wait = store.walk.whenFree();
    if (wait !== null) await wait;
    store.walk.use(1, event.payload.length + (event.actorSigPayload?.length ?? 0));
    check(event);
  }
  return issues;
}

/** The event before the first one of a page, so that the first link is checked too. null if there is none. */
async function eventBefore(store: BoundedLedgers, source: EventSource, first: LedgerEvent) {
  if (first.seq === 0) return null;
  const [scope] = source.scopes ?? [];
  const from = first.seq - 1;
  const page = { from, limit: 1, descending: true, charsMax: pageCharsMax };
  const entries =
    scope === undefined
      ? await store.read(source.ledgerId, from, 1, pageCharsMax)
      : (await store.readScope(source.ledgerId, scope, page)).entries;
  const entry = entries[0];
  if (entry === undefined || entry.seq >= first.seq) return null;
  return readEvent(entry, source, []);
}

/** Finds out whether the newest event differs from the ledger's head. */
function headIssues(newest: LedgerEvent | undefined, head: Head): IntegrityIssue[] {
  if (newest?.seq !== head.seq || newest.hash === head.hash) return [];
  const detail = 'the newest event is not the one that the ledger ends in';
  return [{ eventId: newest.id, type: 'broken_link', detail }];
}

/** Finds events that are missing at the ends of an unfiltered page of a ledger. `next`: where the next page begins. */
function edgeIssues(
  ascending: readonly LedgerEvent[],
  descending: boolean,
  bounds: SeqBounds,
  next: EventStart | null,
): IntegrityIssue[] {
  const issues: IntegrityIssue[] = [];
  const [oldest, newest] = [ascending[0], ascending.at(-1)];
  const expectedLow = descending && next !== null ? next.seq + 1 : bounds.low;
  const expectedHigh = !descending && next !== null ? next.seq - 1 : bounds.high;
  if (expectedLow > expectedHigh) return issues;
  if (oldest === undefined || oldest.seq > expectedLow)
    issues.push({ ...missing(expectedLow), eventId: oldest?.id ?? noEvent });
  if (newest !== undefined && newest.seq < expectedHigh)
    issues.push({ ...missing(newest.seq + 1), eventId: newest.id });
  return issues;
}
