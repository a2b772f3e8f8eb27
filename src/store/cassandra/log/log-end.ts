import type { Head } from '../../ledger-store.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { intMax, numberOf } from '../session/session.ts';
import { type BucketState, type LedgerLog, readBucketState } from './bucket.ts';

const HINT = preparedAtStart('SELECT bucket FROM ledger WHERE ledger_id = ?');
const LAST_ROW =
  "SELECT seq FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq >= ? AND seq <= ? ORDER BY scope DESC, seq DESC LIMIT 1";

export interface LogEnd {
  /** If the state of the bucket is damaged: the seq of its last row, with an empty hash, which no event has. */
  readonly head: Head | null;
  /** The bucket that holds the head (0 for an empty ledger), and its state. */
  readonly bucket: number;
  readonly state: BucketState;
  /** The bucket that takes the next event, and its state. It is the next bucket if `bucket` is full. */
  readonly nextBucket: number;
  readonly next: BucketState;
}

interface Look {
  readonly bucket: number;
  readonly state: BucketState;
  /** As in LogEnd. */
  readonly head: Head | null;
}

/**
 * Finds the end of a log. It sees every append that was answered. `from` is a bucket known to hold events. If it is
 * null, the stored hint is read. Buckets are filled in order, so about 60 reads are enough whatever the hint says:
 * steps forward double until they pass the end, then a binary search finds it. Rejects with the signal's reason.
 */
export async function findLogEnd(log: LedgerLog, from: number | null, signal?: AbortSignal): Promise<LogEnd> {
  const look = async (bucket: number) => {
    signal?.throwIfAborted();
    return lookAt(log, bucket);
  };
  const isFull = ({ bucket, head }: Look) => bucketOfNext(head, log.bucketEvents) > bucket;
  let low = await look(from ?? (await readHint(log)));
  let high: Look | null = null;
  if (low.head === null && low.bucket > 0) {
    // A hint is written after the events that it points to, so a hint to an empty bucket is wrong.
    high = low;
    low = await look(0);
  }
  for (let step = 1; high === null && isFull(low) && low.bucket < intMax; step *= 2) {
    const next = await look(Math.min(low.bucket + step, intMax));
    if (next.head === null) high = next;
    else low = next;
  }
  while (high !== null && isFull(low) && high.bucket - low.bucket > 1) {
    const middle = await look(Math.floor((low.bucket + high.bucket) / 2));
    if (middle.head === null) high = middle;
    else low = middle;
  }
  const { bucket, state, head } = low;
  if (high === null || !isFull(low)) return { head, bucket, state, nextBucket: bucket, next: state };
  return { head, bucket, state, nextBucket: high.bucket, next: high.state };
}

/** With `serial` the look first settles conditional writes in flight on the bucket. */
export async function lookAt(log: LedgerLog, bucket: number, serial = false): Promise<Look> {
  const state = await readBucketState(log, bucket, serial);
  const isSound = isSoundState(state, bucket, log.bucketEvents);
  return { bucket, state, head: isSound ? state.head : await headOfRows(log, bucket) };
}

export function bucketOfNext(head: Head | null, bucketEvents: number): number {
  return head === null ? 0 : Math.floor((head.seq + 1) / bucketEvents);
}

/** The range of seqs that a bucket may hold. A batch that begins in the bucket may run over its end. */
export function seqsOfBucket(bucket: number, bucketEvents: number): { readonly first: number; readonly last: number } {
  return { first: bucket * bucketEvents, last: (bucket + 2) * bucketEvents - 2 };
}

function isSoundState({ head, headSeq, hasRows }: BucketState, bucket: number, bucketEvents: number): boolean {
  if (head === null) return headSeq === null && !hasRows;
  const { first, last } = seqsOfBucket(bucket, bucketEvents);
  return head.seq >= first && head.seq <= last;
}

/**
 * The seq of a bucket's last row with an empty hash, null if there are no rows. So readers of a bucket with a damaged
 * state see its events, and notice the damage by the hash.
 */
export async function headOfRows({ session, ledgerId, bucketEvents }: LedgerLog, bucket: number): Promise<Head | null> {
  const { first, last } = seqsOfBucket(bucket, bucketEvents);
  const params = [keyText(ledgerId), bucket, BigInt(first), BigInt(last)];
  const [row] = await session.read({ cql: LAST_ROW, params });
  const seq = numberOf(row, 'seq');
  return seq === null ? null : { seq, hash: '' };
}

async function readHint({ session, ledgerId }: LedgerLog): Promise<number> {
  const [row] = await session.read({ cql: HINT, params: [keyText(ledgerId)] });
  return Math.max(0, numberOf(row, 'bucket') ?? 0);
}
