import { type LedgerFacts, ledgerFacts } from '../../domain/event/facts.ts';
import { hasReadablePayload, type Projection, projectionsOf } from '../../domain/event/projection.ts';
import { canonicalJson } from '../../domain/json/canonical.ts';
import type { Head, LedgerStore } from '../../store/ledger-store.ts';
import { pageCharsMax } from '../../store/pages.ts';
import type { NewestBatch } from '../../store/store-inspection.ts';
import { eventOf } from './events-up-to.ts';
import type { Finding } from './finding.ts';

/** More events than a batch has, with room for what is written meanwhile. */
const eventsMax = 4_096;

/**
 * Finds projections that the newest batch of a ledger keeps for the next claim, and that follow from no event of it.
 */
export async function wrongPending(
  ledgers: Pick<LedgerStore, 'read'>,
  ledgerId: string,
  head: Head | null,
  { projectedSeq, pending }: NewestBatch,
): Promise<Finding[]> {
  if (pending === null || pending.length === 0 || head === null) return [];
  const count = Math.min(eventsMax, head.seq - projectedSeq);
  if (count <= 0) return [];
  const facts = await factsOf(ledgers, ledgerId);
  const expected = new Set<string>();
  for (let left = count, from = projectedSeq + 1; left > 0; ) {
    const entries = await ledgers.read(ledgerId, from, left, pageCharsMax);
    for (const entry of entries) {
      const event = eventOf(ledgerId, entry);
      // What follows from a damaged event is not known.
      if ('type' in event || !hasReadablePayload(event)) return [];
      for (const projection of projectionsOf(event, event.seq === 0 ? null : facts))
        expected.add(canonicalJson(projection));
    }
    const last = entries.at(-1);
    if (last === undefined) break;
    left -= entries.length;
    from = last.seq + 1;
  }
  return pending
    .filter((projection) => !expected.has(canonicalJson(projection)))
    .map((projection) => ({
      ledgerId,
      seq: null,
      type: 'damaged_row',
      detail: `pending holds ${nameOf(projection)}, which follows from no event of the newest batch: the next claim would write it`,
      table: 'ledger_event',
      key: `ledger_id=${ledgerId}, seq=${head.seq}, column pending`,
    }));
}

async function factsOf(ledgers: Pick<LedgerStore, 'read'>, ledgerId: string): Promise<LedgerFacts | null> {
  const [entry] = await ledgers.read(ledgerId, 0, 1);
  const genesis = entry === undefined || entry.seq !== 0 ? null : eventOf(ledgerId, entry);
  return genesis === null || 'type' in genesis || !hasReadablePayload(genesis) ? null : ledgerFacts(genesis);
}

function nameOf(projection: Projection): string {
  switch (projection.kind) {
    case 'scope':
      return `the scope ${projection.scope}`;
    case 'command':
      return `the command key ${projection.command.id}`;
    case 'cell':
      return `the value of ${projection.key}`;
    case 'line':
      return `a line of ${projection.list}`;
  }
}
