import type { BoundedLedgers } from '../walking/bounded-stores.ts';
import type { SeqBounds } from './event-bounds.ts';
import { ScopeSeqs } from './scope-seqs.ts';
import type { EventPlace } from './stored-event.ts';

/** Seqs of a scope that are read at once: some milliseconds of the main thread if the store answers from memory. */
const seqsAtOnceMax = 4_000;
/** The minimum, for many scopes of which few seqs each are enough. */
const seqsAtOnceMin = 64;

/**
 * Returns the bounds without the first `offset` events, in the direction of reading, for a list without a filter. Reads
 * no event.
 */
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
  const seqs = new ScopeSeqs(store, ledgerId, scopes, descending ? high : low, descending, atOnce);
  await seqs.skip(offset);
  const [first] = await seqs.take(1);
  if (first === undefined) return { low: 0, high: -1 };
  return descending ? { low, high: first.seq } : { low: first.seq, high };
}
