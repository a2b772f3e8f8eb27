import { expect, test } from 'vitest';
import { openLmdb } from '../../../../src/store/lmdb/open.ts';
import { testDir } from '../../../support/running-node.ts';

test('a search whose limit is no whole number ends', async () => {
  await using stores = await openLmdb({ dataDir: testDir(), now: Date.now, onFatal: () => {} });
  for (const id of ['a', 'b', 'c']) {
    const lookups = [{ name: 'n', value: 'v', order: id }];
    await stores.records.put({ kind: 'k', id, replaces: 'absent', value: '{}', lookups });
  }
  const found = await stores.records.find('k', { name: 'n', value: 'v' }, { limit: 1.5 });
  expect(found.map(({ id }) => id)).toEqual(['a', 'b']);
});
