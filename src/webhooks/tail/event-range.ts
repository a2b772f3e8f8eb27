import { largestBatchEvents } from '../../actors/bounds.ts';
import type { LedgerEvent } from '../../domain/event/event.ts';
import { timeOf } from '../../service/reading/event-bounds.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';

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
