import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { Commits } from '../../../../src/store/lmdb/commits.ts';
import { LmdbLedgerStore } from '../../../../src/store/lmdb/log/ledger-store.ts';
import { openTables } from '../../../../src/store/lmdb/tables.ts';
import { temporaryDir } from '../../../support/running-node.ts';

test('a snapshot whose outcome is unknown fails as unavailable, like a claim', async () => {
  const dataDir = temporaryDir();
  const tables = openTables(dataDir);
  const commits = new Commits(() => {});
  const store = new LmdbLedgerStore(tables, commits, () => 0);
  const saved = store.saveSnapshot('owner', { foldVersion: 1, seq: 0, hash: '0'.repeat(64), state: '{}' });
  const claimed = store.claim('ledger');
  const failed = commits.write(() => Promise.reject(new Error('the disk is full')));
  await expect(saved).rejects.toMatchObject({ code: 'unavailable' });
  await expect(claimed).rejects.toMatchObject({ code: 'unavailable' });
  await expect(failed).rejects.toMatchObject({ name: 'OutcomeUnknown' });
  commits.close();
  await tables.root.close();
  rmSync(dataDir, { recursive: true });
});
