import type { LedgerStore } from '../../store/ledger-store.ts';
import type { SeqBounds } from './event-bounds.ts';
import type { EventPlace } from './stored-event.ts';

/** Seqs of a scope read at once: some milliseconds of the main thread, where the store answers from memory. */
const seqsAtOnceMax = 4_000;
/** Of each of many scopes, where a few of each are enough. */
const seqsAtOnceMin = 64;

/** Bounds without the first `offset` events of a list that nothing is filtered out of, in the direction of reading. No event is read. */
export async function boundsAfter(
  store: Pick<LedgerStore, 'scopeSeqs'>,
  place: EventPlace,
  bounds: SeqBounds,
  offset: number,
  descending: boolean,
): Promise<SeqBounds> {
  if (offset === 0) return bounds;
  const { low, high } = bounds;
  // A ledger's seqs have no gaps; where an event is lost, its place is still counted.
  if (place.scopes === null) return descending ? { low, high: high - offset } : { low: low + offset, high };
  const first = await seqAfter(store, place.ledgerId, place.scopes, descending ? high : low, offset, descending);
  if (first === null) return { low: 0, high: -1 };
  return descending ? { low, high: first } : { low: first, high };
}

/** A scope on its way through its seqs: each is read once. */
interface Lane {
  readonly scope: string;
  /** Read and not yet counted, in the direction of reading. */
  seqs: readonly number[];
  /** Where to read on; null: there is no more. */
  from: number | null;
}

/** The seq that stands under some of the scopes after `offset` others; null where there are no more than those. */
async function seqAfter(
  store: Pick<LedgerStore, 'scopeSeqs'>,
  ledgerId: string,
  scopes: readonly string[],
  from: number,
  offset: number,
  descending: boolean,
): Promise<number | null> {
  const order = (a: number, b: number): number => (descending ? b - a : a - b);
  const limit = Math.min(seqsAtOnceMax, Math.max(seqsAtOnceMin, Math.ceil((offset + 1) / scopes.length)));
  const lanes: Lane[] = scopes.map((scope) => ({ scope, seqs: [], from }));
  let skip = offset;
  for (;;) {
    await Promise.all(
      lanes.map(async (lane) => {
        if (lane.seqs.length > 0 || lane.from === null) return;
        lane.seqs = await store.scopeSeqs(ledgerId, lane.scope, { from: lane.from, limit, descending });
        const last = lane.seqs.length < limit ? undefined : lane.seqs.at(-1);
        lane.from = last === undefined ? null : last + (descending ? -1 : 1);
      }),
    );
    // What lies beyond the end of what was read of a scope may come after more of that scope.
    const ends = lanes.filter((lane) => lane.from !== null).map((lane) => lane.seqs.at(-1) as number);
    const reach = ends.sort(order)[0];
    const known: number[] = [];
    for (const lane of lanes) {
      const beyond = reach === undefined ? -1 : lane.seqs.findIndex((seq) => order(seq, reach) > 0);
      const cut = beyond === -1 ? lane.seqs.length : beyond;
      for (const seq of lane.seqs.slice(0, cut)) known.push(seq);
      lane.seqs = lane.seqs.slice(cut);
    }
    if (skip < known.length) return known.sort(order)[skip] as number;
    if (reach === undefined) return null;
    skip -= known.length;
    await new Promise((resolve) => void setImmediate(resolve));
  }
}
