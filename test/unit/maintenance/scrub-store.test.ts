import { expect, test } from 'vitest';
import { scrubLedger } from '../../../src/maintenance/scrub/scrub-ledger.ts';
import { scrubStore } from '../../../src/maintenance/scrub/scrub-store.ts';
import { ledgerId } from '../../support/commands.ts';
import { emptyInspection } from '../../support/empty-inspection.ts';
import { MemoryLedgerStore } from '../../support/memory-store/ledger-store.ts';

const ledgers = () => new MemoryLedgerStore(() => 0);
const parts = { keys: { document: () => null }, authorityKeys: null, now: () => 0, finish: null };

test('a claim that never came to write leaves nothing to check, and nothing unchecked', async () => {
  const store = ledgers();
  await store.claim(ledgerId);
  const inspection = emptyInspection();
  const scrub = await scrubLedger({ ...parts, ledgers: store, inspection, expectations: null }, ledgerId);
  expect(scrub).toMatchObject({ events: 0, findings: [], unchecked: [], outstanding: 0 });
});

test('every finding is counted, and the first 10,000 are kept', async () => {
  const each = async function* <T>(make: (n: number) => T) {
    for (let n = 0; n < 10_001; n += 1) yield { found: make(n), share: 1 };
  };
  const inspection = {
    ...emptyInspection(),
    damagedRows: () =>
      each((n) => ({
        ...{ type: 'damaged_row' as const, table: 'cell', key: `key=${n}` },
        ...{ ledgerId: null, seq: null, detail: 'it has no value' },
      })),
    records: () => each((n) => ({ kind: 'hint', id: String(n), value: 'no JSON', version: '1', lookups: [] })),
    cells: () => each((n) => ({ key: `cell-${n}`, version: 0, value: '' })),
    lines: () => each((n) => ({ list: 'list', order: String(n), value: '' })),
  };
  const { findings, findingCount } = await scrubStore({ ...parts, ledgers: ledgers(), inspection }, () => {});
  expect(findings).toHaveLength(10_000);
  expect(findingCount).toBe(4 * 10_001);
});
