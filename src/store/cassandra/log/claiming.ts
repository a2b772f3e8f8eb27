import { LedgerError } from '../../../domain/errors.ts';
import type { Claim } from '../../ledger-store.ts';
import { MaybeApplied } from '../session/session.ts';
import { claimStatement, type LedgerLog, readBucketState } from './bucket.ts';
import { checkClaimKept } from './kept-writes.ts';
import { findLogEnd, type LogEnd } from './log-end.ts';

/** Attempts of a claim. An attempt fails if another process changed the bucket after it was read. */
const attemptsMax = 20;
const pauseMaxMs = 50;

/**
 * Puts a new fence on the bucket that takes the next event, on condition that fence and head there are as seen. So a
 * write under an earlier fence has either landed before and is seen, or can never land.
 *
 * If the last bucket of the log is full, the claim is made on the next bucket. It then guards both: the full one never
 * changes, and the first batch in the next one must find its own fence there. But it settles nothing in the full one,
 * whose last batch may so far be on a single replica. A serial read of the full bucket settles that batch.
 *
 * `from` is a bucket known to hold events, null if none is known. `end` is the end of the log at the time of the claim.
 * Throws LedgerError `unavailable` if the outcome is unknown, and UnreadableRecord if Cassandra does not keep what is
 * written to the bucket.
 */
export async function takeClaim(
  log: LedgerLog,
  from: number | null,
  newFence: () => string,
): Promise<{ readonly claim: Claim; readonly end: LogEnd }> {
  const { session, ledgerId } = log;
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const end = await findLogEnd(log, from);
    const fence = newFence();
    try {
      const { applied } = await session.decide([claimStatement(ledgerId, end.nextBucket, end.next, fence)]);
      if (applied) {
        await checkClaimKept(log, end.nextBucket, fence, end.next.fence);
        if (end.nextBucket !== end.bucket) await readBucketState(log, end.bucket, true);
        return { claim: Object.freeze({ ledgerId, fence, head: end.head }), end };
      }
    } catch (error) {
      if (!(error instanceof MaybeApplied)) throw error;
      throw new LedgerError('unavailable', 'The store did not say whether the ledger was taken over.', {}, error);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMaxMs, attempt)));
  }
  throw new LedgerError('unavailable', 'Too many claims of this ledger at once.');
}
