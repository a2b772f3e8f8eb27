import type { Head, LedgerStore } from '../../store/ledger-store.ts';
import type { ProjectionWriter, StoreInspection } from '../../store/store-inspection.ts';
import { eventsUpTo } from './events-up-to.ts';
import { isOfProjections } from './finding.ts';
import { ProjectionScrub } from './projection-scrub.ts';

interface WriteMissingParts {
  readonly ledgers: LedgerStore;
  readonly inspection: StoreInspection;
  readonly finish: ProjectionWriter;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/**
 * Writes the missing projections of the events of a ledger up to `head`. For a ledger that was just found whole. If an
 * event is damaged by now, nothing that follows from it or from later events is written.
 */
export async function writeMissing(
  { ledgers, inspection, finish, now }: WriteMissingParts,
  ledgerId: string,
  head: Head | null,
): Promise<void> {
  let isWhole = true;
  const found = (finding: Parameters<typeof isOfProjections>[0]) => {
    if (!isOfProjections(finding)) isWhole = false;
  };
  const headSeq = head?.seq ?? -1;
  const projections = new ProjectionScrub({
    ledgerId,
    ledgers,
    inspection,
    headSeq,
    projectedSeq: headSeq,
    nowMs: now(),
    found,
    expectations: null,
    missing: async (missing) => {
      if (isWhole) await finish.write(ledgerId, missing);
    },
  });
  for await (const _ of eventsUpTo({ ledgers, inspection, ledgerId, head, projections, found, seqs: new Map() }));
  await projections.finish();
}
