import { crowdedBatchEventsMax } from '../../actors/bounds.ts';
import type { LedgerEvent } from '../../domain/event.ts';
import { timeOf } from '../../service/reading/event-bounds.ts';
import type { LedgerStore } from '../../store/ledger-store.ts';

/** A range of a ledger: its events that can be read, and the seqs that it covers. */
export interface EventRange {
  readonly ledgerId: string;
  readonly fromSeq: number;
  readonly throughSeq: number;
  readonly events: readonly LedgerEvent[];
}

/**
 * Answers when what a ledger has committed next behind an event of the range is dated; null: nothing yet, or nothing that can be told apart
 * by its date. By then the event's own commit was over.
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
      .read(ledgerId, throughSeq + 1, crowdedBatchEventsMax)
      .then((entries) => entries.map((entry) => timeOf(entry)?.createdAt ?? null));
    return (await behind).find(isLater) ?? null;
  };
}
