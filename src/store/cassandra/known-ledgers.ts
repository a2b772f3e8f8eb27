import type { Head } from '../ledger-store.ts';
import type { BatchProjections } from './batch-projections.ts';

/** Ledgers remembered: what a node has in memory of them is far more. */
export const knownLedgersMax = 50_000;

/** What this process did last to a ledger. Nothing rests on it but which statements can be spared. */
export interface KnownLedger {
  /** The claim under which it was done. */
  readonly fence: string;
  readonly head: Head | null;
  /** The bucket that holds the head. */
  readonly bucket: number;
  /** Scopes of which the store knows that they have events in the bucket. */
  readonly scopes: ReadonlySet<string>;
}

/** Scopes remembered of one ledger. */
const scopesMax = 256;

/** What a ledger is known as after a batch; `before` as before it. */
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

/** Projections less what is known to be there. */
export function unknownProjections(projections: BatchProjections, known: KnownLedger | null): BatchProjections {
  if (known === null || known.bucket !== projections.bucket) return projections;
  return { ...projections, scopes: projections.scopes.filter((scope) => !known.scopes.has(scope)) };
}
