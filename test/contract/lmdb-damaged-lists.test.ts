import { expect, test } from 'vitest';
import { commandKey, ledgerKey, recordKey } from '../../src/store/lmdb/keys.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import type { FindPage } from '../../src/store/record-store.ts';
import { newDataDir, openDir } from './lmdb-factory.ts';

const ids = Array.from({ length: 40 }, (_, at) => `thing-${String(at).padStart(2, '0')}`);
const expiryOf = (id: string) => 1_000 + ids.indexOf(id);

/** Puts the things, and ruins the first line of some, by which the store knows what a record is. */
async function dirOfThings(damaged: readonly string[]): Promise<string> {
  const dataDir = await newDataDir();
  {
    await using store = await openDir(dataDir);
    for (const id of ids) {
      const lookups = [{ name: 'all', value: 'all', order: id }];
      await store.records.put({ kind: 'thing', id, replaces: 'absent', value: '{}', lookups, expiresAt: expiryOf(id) });
    }
  }
  const tables = openTables(dataDir);
  for (const id of damaged) {
    const key = recordKey('thing', id) ?? Buffer.alloc(0);
    const stored = tables.records.getEntry(key);
    await tables.records.put(key, `XX${stored?.value}`, stored?.version ?? 0);
  }
  await tables.root.close();
  return dataDir;
}

/** All of the list, a page behind the other, until a page is short. */
async function listed(dataDir: string, page: FindPage): Promise<string[]> {
  await using store = await openDir(dataDir);
  const found: string[] = [];
  let behind: Omit<FindPage, 'limit'> = page;
  for (;;) {
    const records = await store.records.find('thing', { name: 'all', value: 'all' }, { ...behind, limit: page.limit });
    found.push(...records.map(({ id }) => id));
    const last = records.at(-1);
    if (last === undefined || records.length < page.limit) return found;
    behind = { ...page, offset: 0, after: last };
  }
}

test.each([
  ['one in a page', ['thing-05']],
  ['the last of a page', ['thing-09']],
  ['a whole page', ids.slice(10, 20)],
  ['the last of all', ['thing-39']],
])('records with a damaged first line hide no other record: %s', async (_, damaged) => {
  const dataDir = await dirOfThings(damaged);
  const left = ids.filter((id) => !damaged.includes(id));
  expect(await listed(dataDir, { limit: 10 })).toEqual(left);
  expect(await listed(dataDir, { limit: 10, descending: true })).toEqual(left.toReversed());
});

test('a sweep passes over damaged records at the beginning and removes the records behind them', async () => {
  await using store = await openDir(await dirOfThings(ids.slice(0, 10)));
  const now = 2_000;
  expect(await store.records.sweep(now, 10)).toEqual({ removed: 10, oldestLeft: expiryOf('thing-20') });
  expect(await store.records.sweep(now, 20)).toEqual({ removed: 20, oldestLeft: null });
  expect(await store.records.sweep(now, 20)).toEqual({ removed: 0, oldestLeft: null });
});

test('a sweep passes over an expiry whose key is too short', async () => {
  const dataDir = await dirOfThings([]);
  const tables = openTables(dataDir);
  await tables.expiries.put(Buffer.from([0]), Buffer.alloc(0));
  await tables.root.close();
  await using store = await openDir(dataDir);
  expect(await store.records.sweep(2_000, 40)).toEqual({ removed: 40, oldestLeft: null });
});

test('a damaged command key is that of another command, and hides no other one', async () => {
  const dataDir = await newDataDir();
  await (await openDir(dataDir))[Symbol.asyncDispose]();
  const tables = openTables(dataDir);
  const ledgerId = '00000000-0000-4000-8000-000000000001';
  await tables.permanentCommands.put(commandKey(ledgerKey(ledgerId), 'a'), Buffer.from([1, 2]));
  await tables.root.close();
  await using store = await openDir(dataDir);
  const keys = ['a', 'b'].map((id) => ({ id, permanent: true }));
  expect(await store.ledgers.findCommands(ledgerId, keys)).toEqual(new Map([['a', { seq: 0, fingerprint: '' }]]));
});
