import { expect, test } from 'vitest';
import { scrubLedger } from '../../../src/maintenance/scrub/scrub-ledger.ts';
import { ledgerId } from '../../support/commands.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';

test('a claim without events leaves nothing to check and nothing unchecked', async () => {
  const ledgers = new MemoryLedgerStore(() => 0);
  await ledgers.claim(ledgerId);
  const nothing = async function* () {};
  const inspection = {
    ledgerIds: nothing,
    newestBatch: async () => ({ projectedSeq: -1, pending: [] }),
    damagedRowsOf: nothing,
    damagedRows: nothing,
    records: nothing,
    scopeEntries: async () => [],
    commandMarks: nothing,
    strayBuckets: nothing,
    fullBuckets: nothing,
    cells: nothing,
    lines: nothing,
  };
  const scrub = await scrubLedger(
    {
      ledgers,
      inspection,
      keys: { document: () => null },
      authorityKeys: null,
      now: () => 0,
      finish: null,
      expectations: null,
    },
    ledgerId,
  );
  expect(scrub).toMatchObject({ events: 0, findings: [], unchecked: [], outstanding: 0 });
});
