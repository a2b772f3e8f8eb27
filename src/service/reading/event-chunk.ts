import type { LedgerStore, StoredEntry } from '../../store/ledger-store.ts';
import type { SeqBounds } from './event-bounds.ts';
import type { EventPlace } from './stored-event.ts';

/** Entries read at once, in the direction of reading. */
interface EventChunk {
  readonly entries: readonly StoredEntry[];
  /** Seqs among them that are listed and gone from the log. */
  readonly missing: readonly number[];
  /** Seq from which on nothing was looked at, in the direction of reading; null: there is no more. */
  readonly next: number | null;
}

/** Read at once while it is not known how large they are, at most half a MiB each. */
const chunkEventsFirst = 16;
const chunkEventsMax = 250;
/** Of rows, read at once and handed on between two turns of the event loop: some 10 ms of the main thread. */
const turnBytes = 6 * 1024 * 1024;

/**
 * The entries within bounds, in the direction of reading, no more at once than are `wanted` in all. Everything else that is ready has its
 * turn before the next ones.
 */
export async function* entriesWithin(
  store: LedgerStore,
  place: EventPlace,
  bounds: SeqBounds,
  descending: boolean,
  wanted: number,
): AsyncGenerator<Portion & Pick<EventChunk, 'missing'>> {
  const isWithin = (seq: number): boolean => seq >= bounds.low && seq <= bounds.high;
  let position: number | null = descending ? bounds.high : bounds.low;
  let left = wanted;
  let count = chunkEventsFirst;
  while (position !== null && isWithin(position)) {
    const chunk = await readChunk(store, place, position, Math.min(count, left), descending, bounds);
    const entries = chunk.entries.filter(({ seq }) => isWithin(seq));
    const portions = portionsOf(entries);
    for (const [at, portion] of portions.entries()) {
      if (at > 0) await turn();
      yield { ...portion, missing: at === 0 ? chunk.missing.filter(isWithin) : [] };
    }
    const bytes = portions.reduce((sum, portion) => sum + portion.bytes, 0);
    // What is gone from the log tells nothing of how large the rest is.
    if (entries.length > 0)
      count = Math.max(1, Math.min(chunkEventsMax, Math.floor((turnBytes * entries.length) / Math.max(bytes, 1))));
    // More than was wanted is read where some could not be shown.
    left = left > entries.length ? left - entries.length : chunkEventsFirst;
    position = entries.length < chunk.entries.length ? null : chunk.next;
    if (position !== null) await turn();
  }
}

interface Portion {
  readonly entries: StoredEntry[];
  /** Of their rows: counted here alone, which of large ones costs a third of what reading them does. */
  bytes: number;
}

/** Cut so that each but the last has what a turn takes; at least one. */
function portionsOf(entries: readonly StoredEntry[]): Portion[] {
  let portion: Portion = { entries: [], bytes: 0 };
  const portions = [portion];
  for (const entry of entries) {
    if (portion.bytes >= turnBytes) {
      portion = { entries: [], bytes: 0 };
      portions.push(portion);
    }
    portion.entries.push(entry);
    portion.bytes += Buffer.byteLength(entry.row);
  }
  return portions;
}

function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Up to `count` entries from seq `position` on. */
async function readChunk(
  store: LedgerStore,
  place: EventPlace,
  position: number,
  count: number,
  descending: boolean,
  bounds: SeqBounds,
): Promise<EventChunk> {
  if (place.scopes !== null) return readScopes(store, place.ledgerId, place.scopes, position, count, descending);
  if (!descending) {
    const entries = await store.read(place.ledgerId, position, count);
    const end = entries.length < count ? undefined : entries.at(-1);
    return { entries, missing: [], next: end === undefined ? null : end.seq + 1 };
  }
  const first = Math.max(bounds.low, position - count + 1);
  const entries = await store.read(place.ledgerId, first, position - first + 1);
  return {
    entries: entries.filter((entry) => entry.seq <= position).reverse(),
    missing: [],
    next: first === bounds.low ? null : first - 1,
  };
}

/** The same from several scopes at once, in the order of the ledger. */
async function readScopes(
  store: LedgerStore,
  ledgerId: string,
  scopes: readonly string[],
  position: number,
  count: number,
  descending: boolean,
): Promise<EventChunk> {
  const pages = await Promise.all(
    scopes.map((scope) => store.readScope(ledgerId, scope, { from: position, limit: count, descending })),
  );
  const order = (a: number, b: number): number => (descending ? b - a : a - b);
  const full = pages.filter((page) => page.entries.length + page.missing.length >= count);
  // Beyond the end of a full page its scope may have more, before what others have.
  const ends = full.map((page) => [...page.entries.map(({ seq }) => seq), ...page.missing].sort(order).at(-1));
  const reach = ends.filter((end) => end !== undefined).sort(order)[0] ?? null;
  const within = (seq: number, end: number | null): boolean => end === null || order(seq, end) <= 0;
  const found = pages.flatMap((page) => page.entries).filter((entry) => within(entry.seq, reach));
  const entries = found.sort((a, b) => order(a.seq, b.seq)).slice(0, count);
  const end = found.length > count ? (entries.at(-1)?.seq ?? reach) : reach;
  return {
    entries,
    missing: pages.flatMap((page) => page.missing).filter((seq) => within(seq, end)),
    next: end === null ? null : end + (descending ? -1 : 1),
  };
}
