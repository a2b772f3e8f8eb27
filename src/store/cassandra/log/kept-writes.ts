import { unreadableRecord } from '../../unreadable-record.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { bigintOf, numberOf, textOf } from '../session/session.ts';
import type { Batch, LedgerLog } from './bucket.ts';

/**
 * Cassandra keeps the cell with the newest timestamp, and says that a conditional write was applied whatever it keeps.
 * So a cell or a deletion that somebody dated ahead makes it acknowledge what it does not keep. Both checks need no
 * clock: a claim and the first batch behind it look whether their own writes are there.
 */

type Place = Pick<LedgerLog, 'session' | 'ledgerId'>;

/** Columns that a batch writes together with the fence. A claim writes the fence alone. */
const headColumns = ['head_seq', 'head_hash', 'projected_seq', 'pending'] as const;
const times = ['fence', ...headColumns].map((column) => `writetime(${column})`).join(', ');
const TIMES = preparedAtStart(`SELECT ${times}, fence FROM ledger_event WHERE ledger_id = ? AND bucket = ? LIMIT 1`);
const ROWS = preparedAtStart(
  "SELECT seq, row, head_seq FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq >= ? AND seq <= ? LIMIT ?",
);

/**
 * Throws UnreadableRecord if a later write would not change the head of the bucket. To be called after a claim was
 * applied: it is the newest write to the bucket, so that no other static column may be newer than its fence. `seen`:
 * the fence before it. Does nothing if there is a newer claim already.
 */
export async function checkClaimKept(place: Place, bucket: number, fence: string, seen: string | null): Promise<void> {
  const [row] = await place.session.read({ cql: TIMES, params: [keyText(place.ledgerId), bucket] });
  const stored = textOf(row, 'fence');
  // Fences are never used again.
  if (stored === seen) throw frozen(place.ledgerId, bucket, 'fence');
  if (stored !== fence) return;
  const claimedAt = bigintOf(row, 'writetime(fence)') ?? 0n;
  const ahead = headColumns.filter((column) => (bigintOf(row, `writetime(${column})`) ?? claimedAt) > claimedAt);
  if (ahead.length > 0) throw frozen(place.ledgerId, bucket, ahead.join(', '));
}

/** Throws UnreadableRecord if Cassandra has not kept a batch that it has acknowledged. */
export async function checkBatchKept({ session, ledgerId }: Place, { bucket, rows, last }: Batch): Promise<void> {
  const params = [keyText(ledgerId), bucket, BigInt(rows[0]?.[0] ?? 0), BigInt(last.seq), rows.length];
  const stored = await session.read({ cql: ROWS, params });
  if ((numberOf(stored[0], 'head_seq') ?? -1) < last.seq) throw frozen(ledgerId, bucket, 'head_seq or a row');
  const texts = new Map(stored.map((row) => [numberOf(row, 'seq'), textOf(row, 'row')]));
  if (rows.some(([seq, text]) => texts.get(seq) !== text)) throw frozen(ledgerId, bucket, 'a row');
}

function frozen(ledgerId: string, bucket: number, what: string): Error {
  return unreadableRecord(
    'head',
    ledgerId,
    `Cassandra does not keep what is written to ${what} of bucket ${bucket} in ledger_event: a cell or a deletion there is dated ahead; let nobody write to the ledger, and see "Cells that are dated wrongly" in docs/operations.md`,
  );
}
