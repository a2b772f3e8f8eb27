import type { Head, LedgerEntry } from '../ledger-store.ts';
import type { EventProjections } from '../projection-writer.ts';
import { type BatchProjections, formatPending } from './batch-projections.ts';
import { keyText } from './keys.ts';
import { preparedAtStart } from './prepared-at-start.ts';
import { bigintOf, type CqlSession, numberOf, type Row, type Statement, textOf } from './session.ts';

/**
 * A ledger's log lies in buckets, a partition each. A batch lies whole in one: in bucket `first seq div bucketEvents`.
 * So a bucket holds seqs from its number times bucketEvents on, less those at its beginning that came with the batch
 * that filled the bucket before. A bucket whose head reaches its end is full, and a full bucket never changes: claims
 * and appends are conditional on its head, and go to the next bucket from then on.
 */
export const bucketEvents = 1_024;

/** What the static columns of a bucket say. */
export interface BucketState {
  /** The newest claim on the bucket. null: nobody has claimed it, or written to it. */
  readonly fence: string | null;
  /** null while no event is in it, or where either column of the head is missing. */
  readonly head: Head | null;
  /** The column as it stands, which a claim is conditional on. */
  readonly headSeq: bigint | null;
  /** Whether any row stands in it. */
  readonly hasRows: boolean;
  /** Projections of the newest batch in it, as in batch-projections.ts. */
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

/** `serial` settles what is under way on the bucket first. */
export async function readBucketState(
  session: CqlSession,
  ledgerId: string,
  bucket: number,
  serial = false,
): Promise<BucketState> {
  const [row] = await session.read({ cql: STATE, params: [keyText(ledgerId), bucket] }, { serial });
  return bucketState(row);
}

export function bucketState(row: Row | undefined): BucketState {
  const seq = numberOf(row, 'head_seq');
  const hash = textOf(row, 'head_hash');
  const head = seq === null || hash === null ? null : { seq, hash };
  return {
    fence: textOf(row, 'fence'),
    head,
    headSeq: bigintOf(row, 'head_seq'),
    hasRows: numberOf(row, 'seq') !== null,
    pending: textOf(row, 'pending') ?? '',
  };
}

/** Takes a bucket over, if it is still as it was seen. */
export function claimStatement(
  ledgerId: string,
  bucket: number,
  seen: Pick<BucketState, 'fence' | 'headSeq'>,
  fence: string,
): Statement {
  return { cql: CLAIM, params: [fence, keyText(ledgerId), bucket, seen.fence, seen.headSeq] };
}

/** What a batch wants to find in its bucket, and what it is. */
export interface BatchPlan {
  readonly ledgerId: string;
  /** The claim that writes. */
  readonly fence: string;
  /** The fence that stands in the bucket: the same, or null where the writer moved on into a bucket that nobody has claimed. */
  readonly standing: string | null;
  /** The head in this bucket; null for its first batch. */
  readonly before: Head | null;
  readonly rows: readonly (readonly [seq: number, row: string])[];
  /** The events of each scope in the batch. */
  readonly scopes: readonly (readonly [scope: string, seqs: readonly number[]])[];
  readonly last: Head;
  readonly projections: BatchProjections;
}

/**
 * A batch as one conditional statement: the head moves if fence and head are as planned, and the rows go with it. They
 * are unconditional for themselves and would overwrite; the condition on the static columns is what protects them.
 */
export function batchStatements(plan: BatchPlan): Statement[] {
  const { fence, standing, before, last, projections, rows, scopes } = plan;
  const ledger = keyText(plan.ledgerId);
  const { bucket } = projections;
  const first = rows[0]?.[0] ?? 0;
  const set = [fence, BigInt(last.seq), last.hash, BigInt(first - 1), formatPending(projections)];
  const condition = [standing, before === null ? null : BigInt(before.seq), before?.hash ?? null];
  return [
    { cql: MOVE_HEAD, params: [...set, ledger, bucket, ...condition] },
    ...rows.map(([seq, row]) => ({ cql: ADD_ROW, params: [ledger, bucket, BigInt(seq), row] })),
    ...scopes.map(([scope, seqs]) => {
      return { cql: ADD_TO_SCOPE, params: [ledger, bucket, keyText(scope), BigInt(seqs[0] ?? 0), seqs.join(' ')] };
    }),
  ];
}

/** The rows of entries, taken over from the caller. */
export function rowsOf(entries: readonly LedgerEntry[]): [number, string][] {
  return entries.map(({ seq, row }) => [seq, row]);
}

/** Which of them belong to which scope. */
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
