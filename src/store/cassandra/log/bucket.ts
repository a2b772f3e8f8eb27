import type { Claim, Head } from '../../ledger-store.ts';
import type { EventProjections } from '../../store-inspection.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { bigintOf, type CqlSession, numberOf, type Row, type Statement, textOf } from '../session/session.ts';
import { type BatchProjections, formatPending } from './batch-projections.ts';

/**
 * Events in a bucket. A ledger's log is divided into buckets, and each bucket is a partition. A batch is in one bucket
 * as a whole, in bucket `floor(first seq / bucketEvents)`. So a batch that fills a bucket may run over its end, and the
 * next bucket then lacks its first seqs. A bucket is full once its head is at or over its end. A full bucket never
 * changes: claims and appends are conditional on its head, and go to the next bucket from then on.
 */
export const bucketEvents = 1_024;

export interface LedgerLog {
  readonly session: CqlSession;
  readonly ledgerId: string;
  readonly bucketEvents: number;
}

export interface BucketState {
  /** Fence of the newest claim of the bucket. null if the bucket was never claimed or written to. */
  readonly fence: string | null;
  /** null if the bucket has no event, or a column of the head is missing. */
  readonly head: Head | null;
  /** The stored value of head_seq. A claim is conditional on it. */
  readonly headSeq: bigint | null;
  readonly hasRows: boolean;
  /** Projections of the newest batch in the bucket, as formatPending returns them. '' if there are none. */
  readonly pending: string;
}

const STATE = preparedAtStart(
  'SELECT fence, head_seq, head_hash, pending, seq FROM ledger_event WHERE ledger_id = ? AND bucket = ? LIMIT 1',
);
const CLAIM = preparedAtStart(
  'UPDATE ledger_event SET fence = ? WHERE ledger_id = ? AND bucket = ? IF fence = ? AND head_seq = ?',
);
const MOVE_HEAD = preparedAtStart(
  'UPDATE ledger_event SET fence = ?, head_seq = ?, head_hash = ?, projected_seq = ?, pending = ? WHERE ledger_id = ? AND bucket = ? IF fence = ? AND head_seq = ? AND head_hash = ?',
);
const ADD_ROW = preparedAtStart(
  "INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, '', ?, ?)",
);
const ADD_TO_SCOPE = preparedAtStart(
  'INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, ?, ?, ?)',
);

/** With `serial` the read first settles conditional writes in flight on the bucket. */
export async function readBucketState(
  { session, ledgerId }: Omit<LedgerLog, 'bucketEvents'>,
  bucket: number,
  serial = false,
): Promise<BucketState> {
  const [row] = await session.read({ cql: STATE, params: [keyText(ledgerId), bucket] }, { serial });
  return bucketState(row);
}

export function bucketState(row: Row | undefined): BucketState {
  return {
    fence: textOf(row, 'fence'),
    head: headIn(row),
    headSeq: bigintOf(row, 'head_seq'),
    hasRows: numberOf(row, 'seq') !== null,
    pending: textOf(row, 'pending') ?? '',
  };
}

export function headIn(row: Row | undefined): Head | null {
  const [seq, hash] = [numberOf(row, 'head_seq'), textOf(row, 'head_hash')];
  return seq === null || hash === null ? null : { seq, hash };
}

/** On condition that fence and head are still as seen. */
export function claimStatement(
  ledgerId: string,
  bucket: number,
  seen: Pick<BucketState, 'fence' | 'headSeq'>,
  fence: string,
): Statement {
  return { cql: CLAIM, params: [fence, keyText(ledgerId), bucket, seen.fence, seen.headSeq] };
}

/** A checked batch, copied from the caller's entries. */
export interface Batch {
  readonly bucket: number;
  /** The head that it follows, in this bucket or the one before. null if it is the first batch of the ledger. */
  readonly sealed: Head | null;
  readonly rows: readonly (readonly [seq: number, row: string])[];
  readonly scopes: readonly (readonly [scope: string, seqs: readonly number[]])[];
  readonly last: Head;
  readonly projections: BatchProjections;
}

/** What must be in the bucket for a batch to be written. */
export interface BatchCondition {
  /** The writer's fence, or null if the writer moves on to a bucket that was never claimed. */
  readonly fence: string | null;
  /** null for the first batch in the bucket. */
  readonly head: Head | null;
}

/**
 * Returns a batch as one conditional write: if the condition holds, fence and head move and the rows are inserted. The
 * inserts have no condition of their own and would overwrite. The condition on the static columns protects the rows.
 */
export function batchStatements({ ledgerId, fence }: Claim, batch: Batch, before: BatchCondition): Statement[] {
  const { bucket, last, projections, rows, scopes } = batch;
  const ledger = keyText(ledgerId);
  const first = rows[0]?.[0] ?? 0;
  const set = [fence, BigInt(last.seq), last.hash, BigInt(first - 1), formatPending(projections)];
  const { head } = before;
  const condition = [before.fence, head === null ? null : BigInt(head.seq), head?.hash ?? null];
  return [
    { cql: MOVE_HEAD, params: [...set, ledger, bucket, ...condition] },
    ...rows.map(([seq, row]) => ({ cql: ADD_ROW, params: [ledger, bucket, BigInt(seq), row] })),
    ...scopes.map(([scope, seqs]) => {
      return { cql: ADD_TO_SCOPE, params: [ledger, bucket, keyText(scope), BigInt(seqs[0] ?? 0), seqs.join(' ')] };
    }),
  ];
}

export function scopesOf(entries: readonly EventProjections[]): [string, number[]][] {
  const scopes = new Map<string, number[]>();
  for (const { seq, projections } of entries)
    for (const projection of projections) {
      if (projection.kind !== 'scope') continue;
      const seqs = scopes.get(projection.scope);
      if (seqs === undefined) scopes.set(projection.scope, [seq]);
      else if (seqs.at(-1) !== seq) seqs.push(seq);
    }
  return [...scopes];
}

export function isSameHead(a: Head | null, b: Head | null): boolean {
  return a?.seq === b?.seq && a?.hash === b?.hash;
}
