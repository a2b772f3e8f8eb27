import { largestBatchEvents } from '../../actors/bounds.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { timeOf } from '../../service/reading/event-bounds.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';
import { pageCharsMax } from '../../store/pages.ts';

export interface EventRange {
  readonly ledgerId: string;
  readonly fromSeq: number;
  readonly throughSeq: number;
  readonly events: readonly LedgerEvent[];
}

/**
 * Returns a function that finds the date (ISO) of the ledger's next commit after an event of the range, by which the
 * event's own commit had ended. null: there is none yet.
 */
export function nextCommitDates(
  ledgers: LedgerStore,
  { ledgerId, throughSeq, events }: EventRange,
): (event: LedgerEvent) => Promise<string | null> {
  let behind: Promise<string | null> | undefined;
  return async ({ createdAt }) => {
    const within = events.find((other) => other.createdAt > createdAt);
    if (within !== undefined) return within.createdAt;
    // All events for which the range has no later date have the same date.
    behind ??= firstLaterDate(ledgers, ledgerId, throughSeq + 1, createdAt);
    return behind;
  };
}

/** Looks through as many events as one commit has at most. */
async function firstLaterDate(
  ledgers: LedgerStore,
  ledgerId: string,
  fromSeq: number,
  createdAt: string,
): Promise<string | null> {
  let from = fromSeq;
  for (let left = largestBatchEvents; left > 0; ) {
    const entries = await ledgers.read(ledgerId, from, left, pageCharsMax);
    for (const entry of entries) {
      const time = timeOf(entry);
      if (time !== null && time.createdAt > createdAt) return time.createdAt;
    }
    const last = entries.at(-1);
    if (last === undefined) return null;
    left -= entries.length;
    from = last.seq + 1;
  }
  return null;
}
