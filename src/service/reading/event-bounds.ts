import { CorruptRow, parseRow } from '../../domain/event/row.ts';
import { isoTime, isWritable } from '../../domain/values/time.ts';
import { uuidV7Time } from '../../domain/values/uuid.ts';
import type { StoredEntry } from '../../store/ledger-store.ts';
import { pageCharsMax } from '../../store/pages.ts';
import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { EventQuery } from './event-query.ts';
import { ScopeSeqs } from './scope-seqs.ts';
import type { EventPlace } from './stored-event.ts';

/** Seqs of a scope that are read at once: some milliseconds of the main thread if the store answers from memory. */
const seqsAtOnceMax = 4_000;
/** The minimum, for many scopes of which few seqs each are enough. */
const seqsAtOnceMin = 64;
/** How many events are read to find one with a readable time. */
const readableWithinEvents = 8;

/** A range of a ledger's seqs, both ends inclusive. Empty if `low` is greater than `high`. */
export interface SeqBounds {
  readonly low: number;
  readonly high: number;
}

/** The seqs that can match the query. Times are found by bisection: created_at never goes back within a ledger. */
export async function seqBounds(
  store: Pick<BoundedLedgers, 'read'>,
  ledgerId: string,
  headSeq: number,
  query: Pick<EventQuery, 'fromSeq' | 'eventId' | 'from' | 'to' | 'startSeq' | 'descending'>,
): Promise<SeqBounds> {
  let low = query.fromSeq ?? 0;
  let high = headSeq;
  let { from, to } = query;
  if (query.eventId !== null) {
    // An event's id has its created_at in it, so an event is found by its id without an index.
    const idTime = uuidV7Time(query.eventId);
    if (idTime === null || !isWritable(idTime)) return { low: 0, high: -1 };
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

/** The bounds without the first `offset` events, in the direction of reading, for a list without a filter. */
export async function boundsAfter(
  store: Pick<BoundedLedgers, 'scopeSeqs'>,
  place: EventPlace,
  bounds: SeqBounds,
  offset: number,
  descending: boolean,
): Promise<SeqBounds> {
  if (offset === 0) return bounds;
  const { low, high } = bounds;
  // A ledger's seqs have no gaps. The seq of a lost event still counts.
  if (place.scopes === null) return descending ? { low, high: high - offset } : { low: low + offset, high };
  const { ledgerId, scopes } = place;
  const atOnce = Math.min(seqsAtOnceMax, Math.max(seqsAtOnceMin, Math.ceil((offset + 1) / scopes.length)));
  const seqs = new ScopeSeqs(store, { ledgerId, scopes, from: descending ? high : low, descending, atOnce });
  await seqs.skip(offset);
  const [first] = await seqs.take(1);
  if (first === undefined) return { low: 0, high: -1 };
  return descending ? { low, high: first.seq } : { low: first.seq, high };
}

/**
 * The first seq, from `fromSeq` on, whose created_at meets a condition that all later events meet too. headSeq + 1 if
 * none does.
 */
export async function firstSeqAt(
  store: Pick<BoundedLedgers, 'read'>,
  ledgerId: string,
  headSeq: number,
  condition: (createdAt: string) => boolean,
  fromSeq = 0,
): Promise<number> {
  const timeFrom = async (seq: number, withinEvents: number) => {
    const entries = await store.read(ledgerId, seq, withinEvents, pageCharsMax);
    return entries.map(timeOf).find((time) => time !== null);
  };
  let low = fromSeq;
  let high = headSeq + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // For a missing or damaged event the next readable one is taken. The bisection stays right.
    const readable = (await timeFrom(middle, 1)) ?? (await timeFrom(middle, readableWithinEvents));
    if (readable === undefined || condition(readable.createdAt)) high = middle;
    else low = readable.seq + 1;
  }
  return low;
}

export function timeOf(entry: StoredEntry): { readonly seq: number; readonly createdAt: string } | null {
  try {
    return { seq: entry.seq, createdAt: parseRow(entry.row).createdAt };
  } catch (error) {
    if (error instanceof CorruptRow) return null;
    throw error;
  }
}
