import { LedgerError } from '../../domain/errors.ts';
import type { ProjectionWriter } from '../projection-writer.ts';
import { projectionsOfBatch } from './batch-projections.ts';
import { readBucketState, scopesOf } from './bucket.ts';
import { keyText } from './keys.ts';
import { writeProjections } from './projecting.ts';
import { placesIn } from './scopes.ts';
import { type CqlSession, type Statement, Undecided } from './session.ts';

const LIST = 'INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS';
/** Rows of a scope that go in together. */
const rowsMax = 64;

export interface ProjectionWriterParts {
  readonly session: CqlSession;
  /** As the keyspace was made. */
  readonly bucketEvents: number;
  /** Milliseconds since 1970: command marks that do not count for ever count for 24 hours from then. */
  readonly now: () => number;
}

/** Writes projections into a keyspace. Cells carry their seq as timestamp: one that was deleted by hand since stays deleted. */
export function projectionWriter({ session, bucketEvents, now }: ProjectionWriterParts): ProjectionWriter {
  return {
    async write(ledgerId, events) {
      for (const [bucket, those] of Map.groupBy(events, ({ seq }) => Math.floor(seq / bucketEvents))) {
        // The first seqs of a bucket may have come with the batch that filled the one before.
        const before = bucket === 0 ? null : (await readBucketState(session, ledgerId, bucket - 1)).head;
        const byBucket = Map.groupBy(those, ({ seq }) => (seq <= (before?.seq ?? -1) ? bucket - 1 : bucket));
        for (const [home, inside] of byBucket) {
          for (const [scope, seqs] of scopesOf(inside)) await listInScope(session, ledgerId, home, scope, seqs);
          await writeProjections(session, ledgerId, projectionsOfBatch(home, inside), false, now());
        }
      }
    },
  };
}

/**
 * Has the log list events under a scope, each in a row of its own: rows of several could not stand in order between others. Conditional, as
 * everything is that goes into the log: a row that somebody changed is left to be found, and not written over.
 */
async function listInScope(
  session: CqlSession,
  ledgerId: string,
  bucket: number,
  scope: string,
  seqs: readonly number[],
): Promise<void> {
  const listed = new Set((await placesIn(session, ledgerId, scope, bucket)).map(({ seq }) => seq));
  const rows = seqs
    .filter((seq) => !listed.has(seq))
    .map((seq) => ({ cql: LIST, params: [keyText(ledgerId), bucket, keyText(scope), BigInt(seq), String(seq)] }));
  for (let at = 0; at < rows.length; at += rowsMax) {
    const together = rows.slice(at, at + rowsMax);
    if (await isWritten(session, together)) continue;
    // One of them stands there already, and has kept the others out.
    for (const row of together) await isWritten(session, [row]);
  }
}

async function isWritten(session: CqlSession, rows: readonly Statement[]): Promise<boolean> {
  try {
    return (await session.decide(rows)).applied;
  } catch (error) {
    if (!(error instanceof Undecided)) throw error;
    throw new LedgerError('unavailable', 'The store did not say if rows of a scope went in: try again.', {}, error);
  }
}
