import { type Claim, Fenced, type Head, type LedgerEntry, OutcomeUnknown } from '../../ledger-store.ts';
import { decodeStored } from '../../unreadable-record.ts';
import { checkEntryRun } from '../../write-checks.ts';
import { type CqlSession, MaybeApplied, textOf } from '../session/session.ts';
import { type BatchProjections, parsePending, projectionsOfBatch } from './batch-projections.ts';
import {
  type Batch,
  type BatchCondition,
  batchStatements,
  headIn,
  isSameHead,
  readBucketState,
  scopesOf,
} from './bucket.ts';

/** Throws TypeError if the entries do not follow one another, and RangeError if there are more than a bucket takes. */
export function batchOf(entries: readonly LedgerEntry[], bucketEvents: number): Batch {
  const { first, last } = checkEntryRun(entries);
  if (entries.length > bucketEvents) throw new RangeError(`An append has at most ${bucketEvents} entries`);
  const bucket = Math.floor(first.seq / bucketEvents);
  return {
    bucket,
    sealed: first.seq === 0 ? null : { seq: first.seq - 1, hash: first.prevHash },
    rows: entries.map(({ seq, row }) => [seq, row]),
    scopes: scopesOf(entries),
    last: { seq: last.seq, hash: last.hash },
    projections: projectionsOfBatch(bucket, entries),
  };
}

interface PlannedBatch {
  readonly before: BatchCondition;
  /** Must be projected before the batch is written. null if there is nothing. */
  readonly unprojected: BatchProjections | null;
}

/**
 * Finds the condition under which a batch may be written. If the batch follows what this process wrote under the same
 * claim, nothing has to be read. The first batch of a bucket finds no head in it to compare with. Then the bucket
 * before, read at SERIAL, must be full and end with the head that the batch follows. One of the two buckets must be
 * under the same claim, and this bucket must not be under another one.
 *
 * Throws Fenced if the claim or the head is already another. Then nothing was sent.
 */
export async function planBatch(
  session: CqlSession,
  claim: Claim,
  batch: Batch,
  known: KnownLedger | null,
): Promise<PlannedBatch> {
  const { ledgerId, fence } = claim;
  const { bucket, sealed } = batch;
  const own = known !== null && known.fence === fence && isSameHead(known.head, sealed) ? known : null;
  const planned = (head: Head | null, fenceBefore: string | null, pending: string): PlannedBatch => ({
    before: { fence: fenceBefore, head },
    unprojected: own === null ? decodeStored({ kind: 'pending', id: ledgerId, value: pending }, parsePending) : null,
  });
  if (own !== null && own.bucket === bucket && sealed !== null) return planned(sealed, fence, '');

  const state = await readBucketState({ session, ledgerId }, bucket);
  if (state.head !== null) {
    if (state.fence !== fence || !isSameHead(state.head, sealed)) throw new Fenced();
    return planned(sealed, fence, state.pending);
  }
  if (sealed === null) {
    if (state.fence !== fence) throw new Fenced();
    return planned(null, fence, '');
  }
  if (bucket === 0) throw new Fenced();
  const before = await readBucketState({ session, ledgerId }, bucket - 1, true);
  const mayWrite = state.fence === fence || (state.fence === null && before.fence === fence);
  if (!mayWrite || !isSameHead(before.head, sealed)) throw new Fenced();
  return planned(null, state.fence, before.pending);
}

/** Writes a planned batch. Throws Fenced or OutcomeUnknown, or LedgerError if nothing was sent. */
export async function writeBatch(
  session: CqlSession,
  claim: Claim,
  batch: Batch,
  before: BatchCondition,
): Promise<void> {
  const decision = await session.decide(batchStatements(claim, batch, before)).catch((error: unknown) => {
    throw error instanceof MaybeApplied ? new OutcomeUnknown(error) : error;
  });
  if (decision.applied) return;
  // The head is this batch's own, under its own claim: the batch may have been written. Only a new claim settles that.
  if (textOf(decision.row, 'fence') === claim.fence && isSameHead(headIn(decision.row), batch.last))
    throw new OutcomeUnknown(new Error('the condition did not hold, and yet the head is the one to be written'));
  throw new Fenced();
}

/** The last write of this process to a ledger. It only saves statements: correctness does not depend on it. */
export interface KnownLedger {
  readonly fence: string;
  readonly head: Head | null;
  readonly bucket: number;
  readonly scopes: ReadonlySet<string>;
  /** Whether a batch under this claim was read back from this bucket. */
  readonly isReadBack: boolean;
}

/** Scopes remembered for one ledger. If there are as many, the next batch forgets them. */
const scopesMax = 256;

/** What is known of a ledger after a batch that was kept. `before` is what was known before the batch, or null. */
export function knownAfter(
  fence: string,
  head: Head,
  { bucket, scopes }: BatchProjections,
  before: KnownLedger | null,
): KnownLedger {
  const kept = before?.bucket === bucket && before.scopes.size < scopesMax ? before.scopes : null;
  const isNew = kept === null || scopes.some((scope) => !kept.has(scope));
  return { fence, head, bucket, scopes: isNew ? new Set([...(kept ?? []), ...scopes]) : kept, isReadBack: true };
}

export function unknownProjections(projections: BatchProjections, known: KnownLedger | null): BatchProjections {
  if (known === null || known.bucket !== projections.bucket) return projections;
  return { ...projections, scopes: projections.scopes.filter((scope) => !known.scopes.has(scope)) };
}
