import { beforeAll, expect, test } from 'vitest';
import { ledgerKey, scopePrefix, seqKey } from '../../src/store/lmdb/keys.ts';
import { NOTHING, openTables } from '../../src/store/lmdb/tables.ts';
import { runNode, suiteDir } from '../support/running-node.ts';
import { makeTamperingCases, type TamperingCase, wronglyRead } from '../support/tamperings.ts';

const dataDir = suiteDir();
let cases: readonly TamperingCase[] = [];

beforeAll(async () => {
  {
    await using node = await runNode({ dataDir });
    cases = await makeTamperingCases(node.base);
  }
  const tables = openTables(dataDir);
  for (const { tampering, order, master } of cases) {
    const ledger = ledgerKey(order.ledgerId);
    const key = (seq: number) => seqKey(ledger, seq);
    await tampering.change(
      {
        row: async (seq) => tables.events.get(key(seq)) ?? '',
        put: async (seq, row) => {
          expect(row).not.toBe(tables.events.get(key(seq)));
          await tables.events.put(key(seq), row);
        },
        remove: async (seq) => expect(await tables.events.remove(key(seq))).toBe(true),
        removeFromMaster: async (masterId, seq) =>
          expect(await tables.scopes.remove(seqKey(scopePrefix(ledger, `master:${masterId}`), seq))).toBe(true),
        addToMaster: (masterId, seq) =>
          tables.scopes.put(seqKey(scopePrefix(ledger, `master:${masterId}`), seq), NOTHING),
      },
      master,
    );
  }
  await tables.root.close();
});

test('each change of the stored data is reported by the next read of it after a restart', async () => {
  await using node = await runNode({ dataDir });
  expect(await wronglyRead(node.base, cases)).toEqual([]);
});
