import type { Head } from '../../ledger-store.ts';
import type { BatchProjections } from './batch-projections.ts';

/** Most ledgers remembered. The ledger actors of a node take far more memory. */
export const knownLedgersMax = 50_000;

/** The last write of this process to a ledger. It only saves statements: correctness does not depend on it. */
export interface KnownLedger {
  /** Fence of the claim under which it was written. */
  readonly fence: string;
  readonly head: Head | null;
  /** The bucket that holds the head. */
  readonly bucket: number;
  /** Scopes that are known to be listed in scope_bucket for this bucket. */
  readonly scopes: ReadonlySet<string>;
}

/** Scopes remembered for one ledger. If there are as many, the next batch forgets them. */
const scopesMax = 256;

/** Returns what is known of a ledger after a batch. `before` is what was known before the batch, or null. */
export function knownAfter(
  fence: string,
  head: Head,
  { bucket, scopes }: BatchProjections,
  before: KnownLedger | null,
): KnownLedger {
  const kept = before?.bucket === bucket && before.scopes.size < scopesMax ? before.scopes : null;
  const isNew = kept === null || scopes.some((scope) => !kept.has(scope));
  return { fence, head, bucket, scopes: isNew ? new Set([...(kept ?? []), ...scopes]) : kept };
}

/** Returns the projections without the scopes that are known to be listed. */
export function unknownProjections(projections: BatchProjections, known: KnownLedger | null): BatchProjections {
  if (known === null || known.bucket !== projections.bucket) return projections;
  return { ...projections, scopes: projections.scopes.filter((scope) => !known.scopes.has(scope)) };
}
