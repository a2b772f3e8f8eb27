import { type LedgerFacts, ledgerFacts } from '../../domain/event/ledger-facts.ts';
import { type Projection, projectionsOf } from '../../domain/event/projection.ts';
import type { Head, LedgerStore } from '../../store/ledger-store.ts';
import type { NewestBatch } from '../../store/store-inspection.ts';
import type { Finding } from './finding.ts';
import { eventOf } from './scrubbed-event.ts';

/** More events than a batch has, with room for what is written meanwhile. */
const eventsMax = 4_096;

/**
 * Finds the projections that the newest batch of a ledger keeps for the next claim to write, and that follow from none
 * of its events.
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
  for (const entry of await ledgers.read(ledgerId, projectedSeq + 1, count)) {
    const event = eventOf(ledgerId, entry);
    // What follows from a damaged event is not known.
    if ('type' in event) return [];
    for (const projection of projectionsOf(event, event.seq === 0 ? null : facts)) expected.add(textOf(projection));
  }
  return pending
    .filter((projection) => !expected.has(textOf(projection)))
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
  return genesis === null || 'type' in genesis ? null : ledgerFacts(genesis);
}

function textOf(projection: Projection): string {
  switch (projection.kind) {
    case 'scope':
      return JSON.stringify(['scope', projection.scope]);
    case 'command':
      return JSON.stringify([
        'command',
        projection.command.id,
        projection.command.fingerprint,
        projection.command.permanent,
      ]);
    case 'cell':
      return JSON.stringify(['cell', projection.key, projection.value]);
    case 'line':
      return JSON.stringify(['line', projection.list, projection.order, projection.value]);
  }
}

function nameOf(projection: Projection): string {
  switch (projection.kind) {
    case 'scope':
      return `the scope ${projection.scope}`;
    case 'command':
      return `a key of command ${projection.command.id}`;
    case 'cell':
      return `the value of ${projection.key}`;
    case 'line':
      return `a line of ${projection.list}`;
  }
}
