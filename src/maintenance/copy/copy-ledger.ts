import { LedgerError } from '../../domain/errors.ts';
import { Fenced, type Head, type LedgerStore, OutcomeUnknown } from '../../store/ledger-store.ts';
import { checkedBatches, eventAt } from './checked-batches.ts';
import { CopyRefused } from './refusal.ts';

/** Attempts for one ledger while the target does not answer. The pauses grow to two seconds: half a minute together. */
const attemptsMax = 20;
const pauseMaxMs = 2_000;

interface LedgerCopyParts {
  readonly source: LedgerStore;
  readonly target: LedgerStore;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Called with the number of events that are in the target now, including events that were there before. */
  readonly copied: (events: number) => void;
}

/**
 * Copies a ledger with its projections, from the end of the target's log to `head`. Checks every hash and link, and
 * compares the target's newest event with the source's event at that seq.
 *
 * Throws CopyRefused for a ledger that is damaged, or of which the target has other events. Nothing was written then,
 * or a correct beginning of the ledger. Throws LedgerError, OutcomeUnknown or Fenced if the target does not answer for
 * long.
 */
export async function copyLedger(parts: LedgerCopyParts, ledgerId: string, head: Head): Promise<void> {
  let reported = 0;
  const reach = (count: number) => {
    if (count > reported) parts.copied(count - reported);
    reported = Math.max(reported, count);
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptCopy(parts, ledgerId, head, reach);
    } catch (error) {
      const mayPass = error instanceof OutcomeUnknown || error instanceof Fenced || error instanceof LedgerError;
      if (!mayPass || attempt === attemptsMax) throw error;
      await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMaxMs, 50 * 2 ** attempt)));
    }
  }
}

async function attemptCopy(
  { source, target, now }: LedgerCopyParts,
  ledgerId: string,
  head: Head,
  reach: (count: number) => void,
): Promise<void> {
  const standing = await target.head(ledgerId);
  await checkStanding(source, target, ledgerId, head, standing);
  if (standing !== null && standing.seq > head.seq) return reach(head.seq + 1);
  // Also completes the projections of the newest batch, if an earlier copy was interrupted.
  const claim = await target.claim(ledgerId);
  // A write of an earlier attempt may have landed just before the claim.
  await checkStanding(source, target, ledgerId, head, claim.head);
  if (claim.head !== null && claim.head.seq > head.seq) return reach(head.seq + 1);
  const first = (claim.head?.seq ?? -1) + 1;
  reach(first);
  for await (const entries of checkedBatches({ source, ledgerId, first, head, now })) {
    await target.append(claim, entries);
    reach((entries.at(-1)?.seq ?? head.seq) + 1);
  }
}

/** Throws CopyRefused unless the target has nothing of the ledger, a beginning of it, or all of it and more. */
async function checkStanding(
  source: LedgerStore,
  target: LedgerStore,
  ledgerId: string,
  head: Head,
  standing: Head | null,
): Promise<void> {
  if (standing === null) return;
  const at = Math.min(standing.seq, head.seq);
  const theirs = standing.seq === at ? standing.hash : (await eventAt(target, ledgerId, at)).hash;
  const ours = head.seq === at ? head.hash : (await eventAt(source, ledgerId, at)).hash;
  if (theirs !== ours)
    throw new CopyRefused(
      `Ledger ${ledgerId} stands in the target with another event at seq ${at}, and is left as it is: find out which of the two is to be kept, and copy into another keyspace.`,
    );
}
