import { expect, test } from 'vitest';
import { replayPageEvents } from '../../src/actors/bounds.ts';
import { ledgerKey, scopePrefix, seqKey } from '../../src/store/lmdb/keys.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import { newDataDir, openDir } from './lmdb-factory.ts';

const pages = 8;

/** A ledger of small rows, all of them in one scope. */
async function dirOfLedger(): Promise<string> {
  const dataDir = await newDataDir();
  await (await openDir(dataDir))[Symbol.asyncDispose]();
  const tables = openTables(dataDir);
  const ledger = ledgerKey('ledger');
  await tables.events.batch(() => {
    for (let seq = 0; seq < pages * replayPageEvents; seq++) {
      tables.events.put(seqKey(ledger, seq), 'row');
      tables.scopes.put(seqKey(scopePrefix(ledger, 'scope'), seq), Buffer.alloc(0));
    }
  });
  await tables.root.close();
  return dataDir;
}

/** How many iterations of the event loop pass until all pages are read. */
async function iterationsOf(readPage: (from: number) => Promise<unknown>): Promise<number> {
  let iterations = 0;
  let next = setImmediate(function count() {
    iterations += 1;
    next = setImmediate(count);
  });
  for (let page = 0; page < pages; page++) await readPage(page * replayPageEvents);
  clearImmediate(next);
  return iterations;
}

test('reading a long ledger page by page lets the event loop go on', async () => {
  await using store = await openDir(await dirOfLedger());
  const limit = replayPageEvents;
  const sizes: number[] = [];
  const ofLog = await iterationsOf(async (from) => {
    sizes.push((await store.ledgers.read('ledger', from, limit, 1_000_000)).length);
  });
  const ofScope = await iterationsOf(async (from) => {
    sizes.push((await store.ledgers.readScope('ledger', 'scope', { from, limit })).entries.length);
  });
  const ofLargeRows = await iterationsOf((from) => store.ledgers.read('ledger', from, limit, 4));
  expect(new Set(sizes)).toEqual(new Set([limit]));
  expect(Math.min(ofLog, ofScope, ofLargeRows)).toBeGreaterThanOrEqual(pages - 1);
});
