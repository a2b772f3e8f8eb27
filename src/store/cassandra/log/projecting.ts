import { commandSlot, commandTtlSeconds, keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, eachAtOnce, inParts, type Statement } from '../session/session.ts';
import type { BatchProjections } from './batch-projections.ts';

const SCOPE = preparedAtStart('INSERT INTO scope_bucket (ledger_id, scope, bucket) VALUES (?, ?, ?)');
const COMMAND = preparedAtStart('INSERT INTO command (ledger_id, slot, id, seq, fingerprint) VALUES (?, ?, ?, ?, ?)');
const COMMAND_FOR_A_DAY = preparedAtStart(`${COMMAND} USING TTL ${commandTtlSeconds}`);
const CELL = preparedAtStart('INSERT INTO cell (key, version, value) VALUES (?, ?, ?) USING TIMESTAMP ?');
const LINE = preparedAtStart('INSERT INTO line (list, line_order, value) VALUES (?, ?, ?)');
const BUCKET = preparedAtStart('INSERT INTO ledger (ledger_id, bucket) VALUES (?, ?) USING TIMESTAMP ?');

/** Each write is to one partition. A batch of 64 events of 64 masters writes to that many partitions. */
const writesAtOnceMax = 16;
/** Most statements in one write. Far more than any batch has for a partition. */
const statementsMax = 256;

/**
 * Writes the projections of a batch, with one write for each partition. It may be repeated, late, and by several nodes
 * at once: every node writes the same rows, and cells have their seq as timestamp. A command key that is written again
 * later may also land in a later window, which does no harm.
 * `isFirst`: the batch is the first of its bucket, so the hint for the end of the log is moved to this bucket.
 */
export async function writeProjections(
  session: CqlSession,
  ledgerId: string,
  projections: BatchProjections,
  isFirst: boolean,
  nowMs: number,
): Promise<void> {
  const writes = projectionWrites(ledgerId, projections, nowMs);
  if (isFirst && projections.bucket > 0) writes.push([bucketHint(ledgerId, projections.bucket)]);
  await eachAtOnce(writes, writesAtOnceMax, (write) => session.write(write));
}

/** The write of the hint at which the search for the head starts. An older hint never replaces a newer one. */
function bucketHint(ledgerId: string, bucket: number): Statement {
  return { cql: BUCKET, params: [keyText(ledgerId), bucket, BigInt(bucket)] };
}

function projectionWrites(
  ledgerId: string,
  { bucket, scopes, commands, cells, lines }: BatchProjections,
  nowMs: number,
): Statement[][] {
  const ledger = keyText(ledgerId);
  const byPartition = new Map<string, Statement[]>();
  const put = (partition: readonly unknown[], cql: string, params: readonly unknown[]) => {
    const key = JSON.stringify(partition);
    const statements = byPartition.get(key);
    if (statements === undefined) byPartition.set(key, [{ cql, params }]);
    else statements.push({ cql, params });
  };
  for (const scope of scopes) put(['scope', scope], SCOPE, [ledger, keyText(scope), bucket]);
  for (const [seq, id, fingerprint, permanent] of commands) {
    const slot = commandSlot(id, permanent === 1, nowMs);
    const cql = permanent === 1 ? COMMAND : COMMAND_FOR_A_DAY;
    put(['command', slot], cql, [ledger, slot, keyText(id), BigInt(seq), fingerprint]);
  }
  for (const [key, seq, value] of cells) put(['cell', key], CELL, [keyText(key), BigInt(seq), value, BigInt(seq + 1)]);
  for (const [list, order, value] of lines) put(['line', list], LINE, [keyText(list), order, value]);
  return [...byPartition.values()].flatMap((statements) => inParts(statements, statementsMax));
}
