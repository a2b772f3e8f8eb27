import { type EventPage, type EventSource, readEventPage } from '../../src/service/reading/event-page.ts';
import { checkEventQuery, type EventQueryFields } from '../../src/service/reading/event-query.ts';
import { boundedLedgers } from '../../src/service/walking/bounded-stores.ts';
import { unboundedWalk } from '../../src/service/walking/walk.ts';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { chainEntries } from './chain-entries.ts';
import { ledgerId } from './commands.ts';
import { MemoryLedgerStore } from './memory-store/ledger-store.ts';
import { type Chain, startMs } from './world.ts';

export async function storeOf(chain: Chain): Promise<LedgerStore> {
  const store = new MemoryLedgerStore(() => startMs);
  await store.append(await store.claim(ledgerId), chainEntries(chain.events));
  return store;
}

/** A page of an event list, without the transport; seals are taken as they are. */
export function pageOf(
  store: LedgerStore,
  source: EventSource,
  fields: EventQueryFields,
  walk = unboundedWalk(),
): Promise<EventPage> {
  return readEventPage(boundedLedgers(walk, store), async () => [], source, checkEventQuery(fields));
}

/** The seqs of a list from a first page on, by its cursors, and of how many pages. */
export async function walkOf(
  store: LedgerStore,
  source: EventSource,
  first: EventQueryFields,
): Promise<{ readonly seqs: readonly number[]; readonly pages: readonly EventPage[] }> {
  const pages: EventPage[] = [];
  for (let cursor: string | null | undefined; cursor !== null; cursor = pages.at(-1)?.nextCursor ?? null)
    pages.push(await pageOf(store, source, cursor === undefined ? first : { ...first, cursor }));
  return { seqs: pages.flatMap(({ events }) => events.map(({ seq }) => seq)), pages };
}
