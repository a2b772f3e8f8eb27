import type { Head } from '../../ledger-store.ts';
import type { DamagedRow } from '../../store-inspection.ts';
import { keyText } from '../keys.ts';
import { intMax, numberOf, type Row, textOf } from '../session/session.ts';
import { exactTime, timesOf, wrongTimes } from '../writetimes.ts';
import { areOfBucket, parsePending } from './batch-projections.ts';
import { bucketState, type LedgerLog } from './bucket.ts';
import { findLogEnd, headOfRows, seqsOfBucket } from './log-end.ts';
import { isSeq, seqsIn } from './scopes.ts';

const HINT = 'SELECT ledger_id, bucket, writetime(bucket) FROM ledger WHERE ledger_id = ?';
const statics = ['fence', 'head_seq', 'head_hash', 'projected_seq', 'pending'];
const STATE = `SELECT ${statics.join(', ')}, ${timesOf(statics)}, seq FROM ledger_event WHERE ledger_id = ? AND bucket = ? LIMIT 1`;
const BEFORE = "SELECT seq FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq < ? LIMIT ?";
const BEHIND = "SELECT seq FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq > ? LIMIT ?";
const TIMES = "SELECT seq, writetime(row) FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = ''";
const SCOPES =
  "SELECT scope, seq, row, writetime(row) FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope > ''";

const namedMax = 10;
/** Empty buckets in a row after which no further ones are read. */
export const emptyBucketsMax = 64;

/** Takes the time after each read: what is written during the walk is not ahead. */
export async function* damagedLogRows(log: LedgerLog, now: () => number): AsyncGenerator<DamagedRow> {
  const { session, ledgerId, bucketEvents } = log;
  // The hint is read before the end, so that writes meanwhile never make the hint look ahead of the end.
  const [hint] = await session.read({ cql: HINT, params: [keyText(ledgerId)] });
  const end = await findLogEnd(log, null);
  const hinted = wrongHint(hint, end.head === null ? null : end.bucket);
  const atHint = { ...ofLedger('ledger', ledgerId), key: `ledger_id=${ledgerId}` };
  if (hinted !== null) yield { ...atHint, detail: hinted };
  const misdated = hint === undefined ? null : wrongTimes(hint, ['bucket'], now(), exactTime('ledger', hint));
  if (misdated !== null) yield { ...atHint, type: 'wrong_writetime', detail: misdated };
  let lastOfBefore = -1;
  for (let bucket = 0, empty = 0; bucket <= end.bucket && empty < emptyBucketsMax; bucket++) {
    const [row] = await session.read({ cql: STATE, params: [keyText(ledgerId), bucket] });
    empty = row === undefined ? empty + 1 : 0;
    if (row === undefined) continue;
    const at = { ...ofLedger('ledger_event', ledgerId), key: `ledger_id=${ledgerId}, bucket=${bucket}` };
    for (const detail of wrongState(row, bucket)) yield { ...at, detail };
    const ahead = wrongTimes(row, statics, now(), null);
    if (ahead !== null) yield { ...at, type: 'wrong_writetime', detail: `bucket ${bucket}: ${ahead}` };
    // Cassandra reads a whole row to return its time: the pages are no larger than those of rows.
    for (const event of await session.read({ cql: TIMES, params: [keyText(ledgerId), bucket] })) {
      const [detail, seq] = [wrongTimes(event, ['row'], now(), null), numberOf(event, 'seq')];
      if (detail !== null)
        yield { ...at, type: 'wrong_writetime', key: `${at.key}, scope='', seq=${seq}`, seq, detail };
    }
    const first = Math.max(seqsOfBucket(bucket, bucketEvents).first, lastOfBefore + 1);
    for await (const seq of misplaced(log, bucket, first, seqsOfBucket(bucket, bucketEvents).last)) {
      const key = `${at.key}, scope='', seq=${seq}`;
      yield { ...at, key, seq, detail: `seq ${seq} does not belong into bucket ${bucket}, and no reader comes to it` };
    }
    for (const { scope, seq, ...wrong } of await wrongScopeRows(log, bucket, bucketState(row).head, now))
      yield { ...at, ...wrong, key: `${at.key}, scope=${scope}, seq=${seq}` };
    lastOfBefore = await trueEnd(log, bucket, row);
  }
}

function ofLedger(table: string, ledgerId: string): Pick<DamagedRow, 'type' | 'table' | 'ledgerId' | 'seq'> {
  return { type: 'damaged_row', table, ledgerId, seq: null };
}

/** The last seq of a bucket. -1 if head and last row differ: which seqs the next bucket lacks is unknown then. */
async function trueEnd(log: LedgerLog, bucket: number, row: Row): Promise<number> {
  const { first, last } = seqsOfBucket(bucket, log.bucketEvents);
  const head = await headOfRows(log, bucket);
  const seq = bucketState(row).head?.seq ?? -1;
  return head?.seq === seq && seq >= first && seq <= last ? seq : -1;
}

/** `endBucket` is null if the ledger has no event. */
function wrongHint(row: Row | undefined, endBucket: number | null): string | null {
  if (row === undefined) return null;
  const bucket = numberOf(row, 'bucket');
  if (bucket === null || bucket < 0 || bucket > intMax) return `the hint names bucket ${bucket}, which is none`;
  if (endBucket === null) return `the hint names bucket ${bucket}, and the ledger has no event`;
  return bucket > endBucket ? `the hint names bucket ${bucket}, and the log ends in bucket ${endBucket}` : null;
}

/** What is wrong with a bucket's static columns. The scrub of the events compares the head with the last row. */
function wrongState(row: Row, bucket: number): string[] {
  const { head, headSeq, hasRows, fence, pending } = bucketState(row);
  const wrong: string[] = [];
  if (!hasRows && (headSeq !== null || textOf(row, 'head_hash') !== null))
    wrong.push(`bucket ${bucket} says where the log ends in it, and no event stands there`);
  if (hasRows && (fence === null || fence === ''))
    wrong.push(`bucket ${bucket} holds events, and says of nobody who wrote them (fence)`);
  const projected = numberOf(row, 'projected_seq');
  if (head !== null && (projected === null || projected < -1 || projected >= head.seq))
    wrong.push(`projected_seq of bucket ${bucket} says ${projected}, which cannot be`);
  if (!isPending(pending, bucket, head?.seq ?? Number.POSITIVE_INFINITY))
    wrong.push(`pending of bucket ${bucket} cannot be read, or is not that of its newest batch`);
  return wrong;
}

function isPending(text: string, bucket: number, lastSeq: number): boolean {
  try {
    const pending = parsePending(text);
    return pending === null || areOfBucket(pending, bucket, lastSeq);
  } catch {
    return false;
  }
}

async function* misplaced(
  { session, ledgerId }: LedgerLog,
  bucket: number,
  first: number,
  last: number,
): AsyncGenerator<number> {
  const place = [keyText(ledgerId), bucket];
  for (const [cql, bound] of [
    [BEFORE, first],
    [BEHIND, last],
  ] as const)
    for (const row of await session.read({ cql, params: [...place, BigInt(bound), namedMax] })) {
      const seq = numberOf(row, 'seq');
      if (seq !== null) yield seq;
    }
}

interface WrongScopeRow extends Pick<DamagedRow, 'type' | 'detail'> {
  readonly scope: string;
  readonly seq: number | null;
}

async function wrongScopeRows(
  log: LedgerLog,
  bucket: number,
  head: Head | null,
  now: () => number,
): Promise<WrongScopeRow[]> {
  const rows = await log.session.read({ cql: SCOPES, params: [keyText(log.ledgerId), bucket] });
  const nowMs = now();
  // The scope rows are read before the end, so that every seq they list is at or before that end.
  const inside = seqsOfBucket(bucket, log.bucketEvents);
  const rowsEnd = (await headOfRows(log, bucket))?.seq ?? -1;
  const last = Math.min(inside.last, Math.max(rowsEnd, head?.seq ?? -1));
  return rows.flatMap((row) => {
    const [scope, seq, text] = [textOf(row, 'scope') ?? '', numberOf(row, 'seq'), textOf(row, 'row') ?? ''];
    const seqs = seqsIn(text);
    const isWhole = text !== '' && text.split(' ').every(isSeq) && seqs[0] === seq;
    const wrong = (detail: string): WrongScopeRow[] => [{ scope, seq, type: 'damaged_row', detail }];
    if (!isWhole) return wrong(`the row of scope ${scope} does not list seqs from ${seq} on`);
    const strange = seqs.find((one) => one < inside.first || one > last);
    if (strange !== undefined)
      return wrong(`the row of scope ${scope} lists seq ${strange}, which is not in bucket ${bucket}`);
    const ahead = wrongTimes(row, ['row'], nowMs, null);
    return ahead === null ? [] : [{ scope, seq, type: 'wrong_writetime', detail: `scope ${scope}: ${ahead}` }];
  });
}
