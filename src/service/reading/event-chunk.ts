import { rowBytesMax } from '../../actors/bounds.ts';
import { mapConcurrently } from '../../runtime/collections/map-concurrently.ts';
import type { StoredEntry } from '../../store/ledger-store.ts';
import { charsOf, pageCharsMax } from '../../store/pages.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { SeqBounds } from './event-bounds.ts';
import { type ScopeSeq, ScopeSeqs } from './scope-seqs.ts';
import type { EventPlace } from './stored-event.ts';

/** Entries of one read, in the direction of reading. */
interface EventChunk {
  readonly entries: readonly StoredEntry[];
  /** Seqs that the scope's index lists and the log lacks. */
  readonly missing: readonly number[];
}

/** Events of the first read, when their size is not known yet. */
const chunkEventsFirst = 16;
const chunkEventsMax = 250;
/** Seqs of a scope that are read at once, if several scopes are merged. */
const scopeSeqsAtOnce = 64;
/** Scopes of which events are read at once, and the characters that are read of each. */
const scopesAtOnceMax = 8;
const scopeCharsMax = pageCharsMax / scopesAtOnceMax;
/** Memory of what is read of a scope, which ends with the row that reaches scopeCharsMax. Two bytes a character. */
const scopeHoldBytes = 2 * (scopeCharsMax + rowBytesMax);

/** Reads the next chunk, of at most `count` entries. Resolves with null at the end. */
type ReadNext = (count: number) => Promise<EventChunk | null>;

/**
 * Yields the entries within bounds, of which a filter may leave out any. A read asks for what is left of `wanted` at
 * most, and for fewer large entries.
 */
export async function* entriesWithin(
  store: BoundedLedgers,
  place: EventPlace,
  bounds: SeqBounds,
  descending: boolean,
  wanted: number,
): AsyncGenerator<EventChunk> {
  if (bounds.low > bounds.high) return;
  const isWithin = (seq: number): boolean => seq >= bounds.low && seq <= bounds.high;
  const readNext = readerOf({ store, ledgerId: place.ledgerId, bounds, descending }, place.scopes);
  let left = wanted;
  let count = chunkEventsFirst;
  for (;;) {
    const chunk = await readNext(Math.min(count, left));
    if (chunk === null) return;
    const entries = chunk.entries.filter(({ seq }) => isWithin(seq));
    yield { entries, missing: chunk.missing.filter(isWithin) };
    if (entries.length < chunk.entries.length) return;
    // Missing entries say nothing about the size of the others.
    if (entries.length > 0)
      count = Math.max(1, Math.min(chunkEventsMax, Math.floor((pageCharsMax * entries.length) / charsOf(entries))));
    // More than `wanted` is read if some of the entries could not be shown.
    left = left > entries.length ? left - entries.length : chunkEventsFirst;
  }
}

interface Reading {
  readonly store: BoundedLedgers;
  readonly ledgerId: string;
  readonly bounds: SeqBounds;
  readonly descending: boolean;
}

function readerOf(reading: Reading, scopes: EventPlace['scopes']): ReadNext {
  if (scopes === null) return reading.descending ? downLedger(reading) : upLedger(reading);
  const [scope, ...others] = scopes;
  if (scope === undefined) return async () => null;
  return others.length === 0 ? alongScope(reading, scope) : alongScopes(reading, scopes);
}

function upLedger({ store, ledgerId, bounds }: Reading): ReadNext {
  let next: number | null = bounds.low;
  return async (count) => {
    if (next === null || next > bounds.high) return null;
    const entries = await store.read(ledgerId, next, count, pageCharsMax);
    const last = entries.at(-1);
    const isLast = entries.length < count && charsOf(entries) < pageCharsMax;
    next = isLast || last === undefined ? null : last.seq + 1;
    return { entries, missing: [] };
  };
}

function downLedger({ store, ledgerId, bounds }: Reading): ReadNext {
  let position = bounds.high;
  return async (count) => {
    if (position < bounds.low) return null;
    for (let most = count; ; ) {
      const first = Math.max(bounds.low, position - most + 1);
      const entries = await store.read(ledgerId, first, position - first + 1, pageCharsMax);
      const end = entries.at(-1)?.seq ?? position;
      // The store reads upwards. If it stopped before the end, the entries that it left out come first here, so no more
      // are asked for than those, and no more than were read.
      if (charsOf(entries) >= pageCharsMax && end < position && most > 1) {
        most = Math.max(1, Math.min(entries.length, position - end, most - 1));
        continue;
      }
      const isWithin = ({ seq }: StoredEntry): boolean => seq <= position;
      const chunk = { entries: entries.filter(isWithin).reverse(), missing: [] };
      position = first - 1;
      return chunk;
    }
  };
}

function alongScope({ store, ledgerId, bounds, descending }: Reading, scope: string): ReadNext {
  let next: number | null = descending ? bounds.high : bounds.low;
  return async (count) => {
    if (next === null || next < bounds.low || next > bounds.high) return null;
    const page = { from: next, limit: count, descending, charsMax: pageCharsMax };
    const { entries, missing } = await store.readScope(ledgerId, scope, page);
    const seqs = [...entries.map(({ seq }) => seq), ...missing];
    const isLast = seqs.length < count && charsOf(entries) < pageCharsMax;
    if (isLast || seqs.length === 0) next = null;
    else next = descending ? Math.min(...seqs) - 1 : Math.max(...seqs) + 1;
    return { entries, missing };
  };
}

/** Merges several scopes in the order of the ledger. */
function alongScopes(reading: Reading, scopes: readonly string[]): ReadNext {
  const { store, ledgerId, bounds, descending } = reading;
  const from = descending ? bounds.high : bounds.low;
  const seqs = new ScopeSeqs(store, { ledgerId, scopes, from, descending, atOnce: scopeSeqsAtOnce });
  return async (count) => {
    const taken = await seqs.take(count);
    if (taken.length === 0) return null;
    const entries: StoredEntry[] = [];
    const missing: number[] = [];
    const read = await readTaken(reading, taken);
    let chars = 0;
    // A scope with large events was read in part: from the first event that was not read on, all are put back. The same
    // where the scopes together have more than a page.
    for (const [at, { seq }] of taken.entries()) {
      const entry = read.get(seq);
      if ((entry === undefined && at > 0) || chars >= pageCharsMax) {
        seqs.putBack(taken.slice(at));
        break;
      }
      if (entry === null || entry === undefined) missing.push(seq);
      else {
        entries.push(entry);
        chars += entry.row.length;
      }
    }
    return { entries, missing };
  };
}

/** The entries by seq, null for those that the log lacks. Entries beyond the limits of characters are left out. */
async function readTaken({ store, ledgerId, descending }: Reading, taken: readonly ScopeSeq[]) {
  const read = new Map<number, StoredEntry | null>();
  let chars = 0;
  const readPart = async ([scope, own]: readonly [string, readonly ScopeSeq[]]): Promise<void> => {
    const [first] = own;
    // The scope of the first event is read first, so that each chunk makes progress.
    if (first === undefined || chars >= pageCharsMax) return;
    const page = { from: first.seq, limit: own.length, descending, charsMax: scopeCharsMax };
    const { entries, missing } = await store.readScope(ledgerId, scope, page);
    for (const entry of entries) read.set(entry.seq, entry);
    for (const seq of missing) read.set(seq, null);
    chars += charsOf(entries);
  };
  const scopes = [...Map.groupBy(taken, ({ scope }) => scope)];
  const atOnce = Math.min(scopes.length, scopesAtOnceMax);
  // The page that the walk holds has room for one scope at a time.
  await store.walk.withMore((atOnce - 1) * scopeHoldBytes, (isHeld) =>
    mapConcurrently(scopes, isHeld ? atOnce : 1, readPart),
  );
  return read;
}
