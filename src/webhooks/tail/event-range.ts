import { largestBatchEvents } from '../../actors/bounds.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { timeOf } from '../../service/reading/event-bounds.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';

/** A range of a ledger: its first and last seq, and those of its events that can be parsed. */
export interface EventRange {
  readonly ledgerId: string;
  readonly fromSeq: number;
  readonly throughSeq: number;
  readonly events: readonly LedgerEvent[];
}

/**
 * Returns a function that finds the date (ISO) of the ledger's next commit after an event of the range. The event's own
 * commit had ended by that date. null if no later event has a later date yet.
 */
export function nextCommitDates(
  ledgers: LedgerStore,
  { ledgerId, throughSeq, events }: EventRange,
): (event: LedgerEvent) => Promise<string | null> {
  let behind: Promise<(string | null)[]> | undefined;
  return async ({ createdAt }) => {
    const isLater = (date: string | null) => date !== null && date > createdAt;
    const within = events.find((other) => isLater(other.createdAt));
    if (within !== undefined) return within.createdAt;
    behind ??= ledgers
      .read(ledgerId, throughSeq + 1, largestBatchEvents)
      .then((entries) => entries.map((entry) => timeOf(entry)?.createdAt ?? null));
    return (await behind).find(isLater) ?? null;
  };
}
