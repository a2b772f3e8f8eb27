import { expect, test } from 'vitest';
import { Commits } from '../../../../src/store/lmdb/commits.ts';
import { LmdbLedgerStore } from '../../../../src/store/lmdb/log/ledger-store.ts';
import { openTables } from '../../../../src/store/lmdb/tables.ts';
import { LmdbSignedHeads } from '../../../../src/store/lmdb/trees/signed-heads.ts';
import { LmdbTileStore } from '../../../../src/store/lmdb/trees/tile-store.ts';
import { testDir } from '../../../support/running-node.ts';

test('a write that may be repeated fails as unavailable if its outcome is unknown', async () => {
  const dataDir = testDir();
  const tables = openTables(dataDir);
  const commits = new Commits(() => {});
  const store = new LmdbLedgerStore(tables, commits, () => 0);
  const saved = store.saveSnapshot('owner', { foldVersion: 1, seq: 0, hash: '0'.repeat(64), state: '{}' });
  const claimed = store.claim('ledger');
  const put = new LmdbTileStore(tables, commits).putHashes('origin', 1, 0, [Buffer.alloc(32, 1)]);
  const heads = new LmdbSignedHeads(tables, commits);
  const raised = heads.raise('origin', 1, Buffer.alloc(32, 1));
  const failed = commits.write(() => Promise.reject(new Error('the disk is full')));
  await expect(saved).rejects.toMatchObject({ code: 'unavailable' });
  await expect(claimed).rejects.toMatchObject({ code: 'unavailable' });
  await expect(put).rejects.toMatchObject({ code: 'unavailable' });
  await expect(raised).rejects.toMatchObject({ code: 'unavailable' });
  await expect(failed).rejects.toMatchObject({ name: 'OutcomeUnknown' });
  // What LMDB shows now need not be durable, so it is neither certain nor a reason to skip a raise.
  await expect(store.certainHead('ledger')).rejects.toMatchObject({ name: 'StoreStopped' });
  await expect(heads.raise('origin', 1, Buffer.alloc(32, 1))).rejects.toMatchObject({ name: 'StoreStopped' });
  await expect(store.head('ledger')).resolves.toBeDefined();
  commits.close();
  await tables.root.close();
});
