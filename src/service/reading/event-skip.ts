import type { WalkedLedgers } from '../walked-stores.ts';
import type { SeqBounds } from './event-bounds.ts';
import { ScopeSeqs } from './scope-seqs.ts';
import type { EventPlace } from './stored-event.ts';

/** Seqs of a scope read at once: some milliseconds of the main thread, where the store answers from memory. */
const seqsAtOnceMax = 4_000;
/** Of each of many scopes, where a few of each are enough. */
const seqsAtOnceMin = 64;

/** Bounds without the first `offset` events of a list that nothing is filtered out of, in the direction of reading. No event is read. */
export async function boundsAfter(
  store: Pick<WalkedLedgers, 'scopeSeqs'>,
  place: EventPlace,
  bounds: SeqBounds,
  offset: number,
  descending: boolean,
): Promise<SeqBounds> {
  if (offset === 0) return bounds;
  const { low, high } = bounds;
  // A ledger's seqs have no gaps; where an event is lost, its place is still counted.
  if (place.scopes === null) return descending ? { low, high: high - offset } : { low: low + offset, high };
  const { ledgerId, scopes } = place;
  const atOnce = Math.min(seqsAtOnceMax, Math.max(seqsAtOnceMin, Math.ceil((offset + 1) / scopes.length)));
  const seqs = new ScopeSeqs(store, ledgerId, scopes, descending ? high : low, descending, atOnce);
  await seqs.skip(offset);
  const [first] = await seqs.take(1);
  if (first === undefined) return { low: 0, high: -1 };
  return descending ? { low, high: first.seq } : { low: first.seq, high };
}
