import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ledgerKey, seqKey, textKey, tileKey } from '../../src/store/lmdb/keys.ts';
import { type LmdbStores, openLmdb } from '../../src/store/lmdb/open.ts';
import { openWholeLmdb } from '../../src/store/lmdb/open-whole.ts';
import { openTables, type Tables } from '../../src/store/lmdb/tables.ts';
import type { HashPlace } from '../../src/store/tile-store.ts';
import type { StoreFactory, TestClock } from './stores.ts';
import type { InspectedTreeFactory } from './trees.ts';

/** Opens a data directory. A failed write is only seen in the answers. */
export function openDir(dataDir: string, now: () => number = Date.now): Promise<LmdbStores> {
  return openLmdb({ dataDir, now, onFatal: () => {} });
}

export async function openOnce(dataDir: string): Promise<void> {
  await (await openDir(dataDir))[Symbol.asyncDispose]();
}

/** Like newDataDir, with empty stores in it. */
export async function madeDataDir(): Promise<string> {
  const dataDir = await newDataDir();
  await openOnce(dataDir);
  return dataDir;
}

/** A directory for the running test, not made yet. It and what lies beside it are removed when the test is over. */
export async function newDataDir(): Promise<string> {
  const parent = await newParent();
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  return join(parent, 'data');
}

function newParent(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'lts-lmdb-'));
}

export function lmdbFactory(): StoreFactory<LmdbStores> {
  let clock: TestClock = { nowMs: 0 };
  let parent: string | null = null;
  let dataDir = '';
  let opened: LmdbStores | null = null;
  const close = async () => {
    await opened?.[Symbol.asyncDispose]();
    opened = null;
  };
  const open = async () => {
    const onFatal = (error: Error) => {
      throw error;
    };
    opened = await openLmdb({ dataDir, now: () => clock.nowMs, onFatal });
    return opened;
  };
  return {
    async open(given) {
      clock = given;
      parent = await newParent();
      dataDir = join(parent, 'data');
      return open();
    },
    async reopen() {
      await close();
      return open();
    },
    async loseRow(ledgerId, seq) {
      await close();
      const tables = openTables(dataDir);
      await tables.events.remove(seqKey(ledgerKey(ledgerId), seq));
      await tables.root.close();
      return open();
    },
    async close() {
      await close();
      if (parent !== null) await rm(parent, { recursive: true, force: true });
    },
  };
}

/** The trees of a data directory. What is done without the stores closes them first, and opens them anew. */
export function lmdbTreeFactory(): InspectedTreeFactory {
  let parent: string | null = null;
  let dataDir = '';
  let opened: LmdbStores | null = null;
  const close = async () => {
    await opened?.[Symbol.asyncDispose]();
    opened = null;
  };
  const reopen = async () => {
    await close();
    opened = await openDir(dataDir);
    return opened;
  };
  const inTables = async <T>(work: (tables: Tables) => Promise<T>): Promise<T> => {
    await close();
    const tables = openTables(dataDir);
    const result = await work(tables);
    await tables.root.close();
    await reopen();
    return result;
  };
  const keyOf = ({ owner, level, position }: HashPlace) => tileKey(owner, level, Math.floor(position / 256));
  return {
    async open() {
      parent = await newParent();
      dataDir = join(parent, 'data');
      return reopen();
    },
    reopen,
    storedHash: (place) => inTables(async ({ tiles }) => Buffer.from(tiles.get(keyOf(place)) ?? [])),
    async plantHash(place, value) {
      await inTables(({ tiles }) => tiles.put(keyOf(place), value));
      return opened ?? reopen();
    },
    storedHead: (origin) => inTables(async ({ signedHeads }) => Buffer.from(signedHeads.get(textKey(origin)) ?? [])),
    async plantHead(origin, value) {
      await inTables(({ signedHeads }) => {
        const version = signedHeads.getEntry(textKey(origin))?.version ?? 0;
        return signedHeads.put(textKey(origin), value, version);
      });
      return opened ?? reopen();
    },
    async inspect(work) {
      await close();
      {
        await using whole = await openWholeLmdb(dataDir, Date.now, { mayRemove: true });
        await work(whole.trees);
      }
      return reopen();
    },
    async close() {
      await close();
      if (parent !== null) await rm(parent, { recursive: true, force: true });
    },
  };
}
