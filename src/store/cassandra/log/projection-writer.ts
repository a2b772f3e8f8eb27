import { LedgerError } from '../../../domain/errors.ts';
import type { ProjectionWriter } from '../../store-inspection.ts';
import { keyText } from '../keys.ts';
import { type CqlSession, inParts, MaybeApplied, type Statement } from '../session/session.ts';
import { projectionsOfBatch } from './batch-projections.ts';
import { type LedgerLog, readBucketState, scopesOf } from './bucket.ts';
import { writeProjections } from './projecting.ts';
import { placesIn } from './scopes.ts';

const LIST = 'INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS';
const rowsMax = 64;

interface ProjectionWriterParts extends Omit<LedgerLog, 'ledgerId'> {
  /** Milliseconds since 1970. Command keys that are not permanent are kept for 24 hours from then. */
  readonly now: () => number;
}

/** Cells have their seq as timestamp, so a cell that was deleted by hand stays deleted. */
export function projectionWriter({ session, bucketEvents, now }: ProjectionWriterParts): ProjectionWriter {
  return {
    async write(ledgerId, events) {
      const log = { session, ledgerId, bucketEvents };
      for (const [bucket, those] of Map.groupBy(events, ({ seq }) => Math.floor(seq / bucketEvents))) {
        // The first seqs of a bucket may be in the bucket before, with the batch that filled that bucket.
        const before = bucket === 0 ? null : (await readBucketState(log, bucket - 1)).head;
        const byBucket = Map.groupBy(those, ({ seq }) => (seq <= (before?.seq ?? -1) ? bucket - 1 : bucket));
        for (const [home, inside] of byBucket) {
          for (const [scope, seqs] of scopesOf(inside)) await listInScope(log, home, scope, seqs);
          await writeProjections(session, ledgerId, projectionsOfBatch(home, inside), false, now());
        }
      }
    },
  };
}

/**
 * Each event gets a row of its own, because a row of several events would be out of order beside existing rows. The
 * writes are conditional like all writes to the log, so that a row that was changed by hand is not overwritten.
 */
async function listInScope(log: LedgerLog, bucket: number, scope: string, seqs: readonly number[]): Promise<void> {
  const { session, ledgerId } = log;
  const listed = new Set((await placesIn(log, scope, bucket)).map(({ seq }) => seq));
  const rows = seqs
    .filter((seq) => !listed.has(seq))
    .map((seq) => ({ cql: LIST, params: [keyText(ledgerId), bucket, keyText(scope), BigInt(seq), String(seq)] }));
  for (const together of inParts(rows, rowsMax)) {
    if (await isWritten(session, together)) continue;
    // One of the rows exists already, so none was written. Write them one by one.
    for (const row of together) await isWritten(session, [row]);
  }
}

/** false if one of the rows exists already: then none was written. */
async function isWritten(session: CqlSession, rows: readonly Statement[]): Promise<boolean> {
  try {
    return (await session.decide(rows)).applied;
  } catch (error) {
    if (!(error instanceof MaybeApplied)) throw error;
    throw new LedgerError('unavailable', 'The store did not say if rows of a scope went in: try again.', {}, error);
  }
}
