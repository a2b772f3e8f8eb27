import { LedgerError } from '../../domain/errors.ts';
import type { Claim } from '../ledger-store.ts';
import { claimStatement, readBucketState } from './bucket.ts';
import { findLogEnd, type LogEnd } from './log-end.ts';
import { type CqlSession, Undecided } from './session.ts';

/** Races for one claim that may be lost to other processes. */
const attemptsMax = 20;
const pauseMaxMs = 50;

/** A claim that stands, and the end of the log as of it. */
export interface TakenClaim {
  readonly claim: Claim;
  readonly end: LogEnd;
}

/**
 * Puts a new fence on the bucket that takes the next event, on condition that fence and head there are as seen: so
 * whatever was under way under the fence before has landed by then, and is seen, or never will.
 *
 * Where the log's last bucket is full the claim is made on the next one. Nobody can append to either without it: the
 * full one never changes, and the first batch of the next one finds a fence that is not its own. But a claim
 * there settles nothing in the full one, whose last batch one replica alone may hold as yet: that is done by a serial read.
 *
 * `from`: a bucket known to hold events. LedgerError `unavailable` where the outcome is unknown.
 */
export async function takeClaim(
  session: CqlSession,
  ledgerId: string,
  bucketEvents: number,
  from: number | null,
  newFence: () => string,
): Promise<TakenClaim> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const end = await findLogEnd(session, ledgerId, bucketEvents, from);
    const fence = newFence();
    try {
      const { applied } = await session.decide([claimStatement(ledgerId, end.nextBucket, end.next, fence)]);
      if (applied) {
        if (end.nextBucket !== end.bucket) await readBucketState(session, ledgerId, end.bucket, true);
        return { claim: Object.freeze({ ledgerId, fence, head: end.head }), end };
      }
    } catch (error) {
      if (!(error instanceof Undecided)) throw error;
      throw new LedgerError('unavailable', 'The store did not say whether the ledger was taken over.', {}, error);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMaxMs, attempt)));
  }
  throw new LedgerError('unavailable', 'Too many claims of this ledger at once.');
}
