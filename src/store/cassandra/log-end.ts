import type { Head } from '../ledger-store.ts';
import { type BucketState, readBucketState } from './bucket.ts';
import { keyText } from './keys.ts';
import { preparedAtStart } from './prepared-at-start.ts';
import { type CqlSession, numberOf } from './session.ts';

const HINT = preparedAtStart('SELECT bucket FROM ledger WHERE ledger_id = ?');

/** Where a ledger's log ends. */
export interface LogEnd {
  readonly head: Head | null;
  /** The bucket that holds the head (0 in an empty ledger), and its state. */
  readonly bucket: number;
  readonly state: BucketState;
  /** The bucket that takes the next event, which is another one where that is full, and its state. */
  readonly nextBucket: number;
  readonly next: BucketState;
}

/**
 * Finds the end of a log: from `from` (a bucket known to hold events; null: asks for the hint) on to the first bucket
 * that is not full. Sees every append that was answered.
 */
export async function findLogEnd(
  session: CqlSession,
  ledgerId: string,
  bucketEvents: number,
  from: number | null,
): Promise<LogEnd> {
  let bucket = from ?? (await readHint(session, ledgerId));
  let state = await readBucketState(session, ledgerId, bucket);
  // A hint is written after the events that it points to, so this does not happen; a wrong one must not hide a log.
  while (state.head === null && bucket > 0) state = await readBucketState(session, ledgerId, --bucket);
  for (;;) {
    const nextBucket = bucketOfNext(state.head, bucketEvents);
    if (nextBucket <= bucket) return { head: state.head, bucket, state, nextBucket: bucket, next: state };
    const next = await readBucketState(session, ledgerId, nextBucket);
    if (next.head === null) return { head: state.head, bucket, state, nextBucket, next };
    bucket = nextBucket;
    state = next;
  }
}

/** The bucket that takes the event behind a head. */
export function bucketOfNext(head: Head | null, bucketEvents: number): number {
  return head === null ? 0 : Math.floor((head.seq + 1) / bucketEvents);
}

async function readHint(session: CqlSession, ledgerId: string): Promise<number> {
  const [row] = await session.read({ cql: HINT, params: [keyText(ledgerId)] });
  return numberOf(row, 'bucket') ?? 0;
}
