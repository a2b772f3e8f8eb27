import { LedgerError } from '../domain/errors.ts';
import { Fenced, type Head, type LedgerStore, OutcomeUnknown } from '../store/ledger-store.ts';
import { checkedBatches, eventAt } from './checked-batches.ts';
import { CopyRefused } from './refusal.ts';

/** Tries of one ledger while the target does not answer, with pauses that grow to two seconds: half a minute. */
const attemptsMax = 20;
const pauseMaxMs = 2_000;

export interface LedgerCopyParts {
  readonly source: LedgerStore;
  readonly target: LedgerStore;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Told of events that are in the target now, those that were there before too. */
  readonly copied: (events: number) => void;
}

/**
 * Copies a ledger with its projections, from where the target ends to `head`. Every hash and link is checked on the way, and the target's end
 * against the source's event at that place. Throws CopyRefused for a ledger that is damaged, or that stands in the target with
 * other events; nothing of it was written then, or what was is a true beginning. LedgerError where the target does not answer for long.
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
  // Also completes the projections of the newest batch, should the copy have been broken off before.
  const claim = await target.claim(ledgerId);
  // What an earlier attempt had sent may have landed just before.
  await checkStanding(source, target, ledgerId, head, claim.head);
  if (claim.head !== null && claim.head.seq > head.seq) return reach(head.seq + 1);
  const first = (claim.head?.seq ?? -1) + 1;
  reach(first);
  for await (const entries of checkedBatches({ source, ledgerId, first, head, now })) {
    await target.append(claim, entries);
    reach((entries.at(-1)?.seq ?? head.seq) + 1);
  }
}

/** CopyRefused unless the target has nothing of the ledger but a beginning of it, or all of it and more. */
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
