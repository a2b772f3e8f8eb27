import type { EventEntry } from '../../src/actors/ledger/commit-listener.ts';
import type { LedgerEvent } from '../../src/domain/event/event.ts';
import { ledgerFacts } from '../../src/domain/event/facts.ts';
import { projectionsOf } from '../../src/domain/event/projection.ts';
import { formatRow } from '../../src/domain/event/row.ts';

/** A chain from its beginning, as its writer hands it to the store. */
export function chainEntries(list: readonly LedgerEvent[]): EventEntry[] {
  const [genesis] = list;
  return list.map((event) => {
    const facts = event.seq === 0 || genesis === undefined ? null : ledgerFacts(genesis);
    const { seq, prevHash, hash } = event;
    return { seq, prevHash, hash, row: formatRow(event), projections: projectionsOf(event, facts), event };
  });
}
