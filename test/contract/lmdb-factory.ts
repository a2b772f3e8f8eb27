import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ledgerKey, seqKey } from '../../src/store/lmdb/keys.ts';
import { type LmdbStores, openLmdb } from '../../src/store/lmdb/open.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import type { StoreFactory, TestClock } from './stores.ts';

/** A directory for the running test, not made yet; it and what lies beside it are removed when the test is over. */
export async function newDataDir(): Promise<string> {
  const parent = await newParent();
  onTestFinished(() => rm(parent, { recursive: true, force: true }));
  return join(parent, 'data');
}

function newParent(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'lts-lmdb-'));
}

export function lmdbFactory(): StoreFactory {
  let clock: TestClock = { nowMs: 0 };
  /** Made by this factory, and so removed by it. */
  let parent: string | null = null;
  let dataDir = '';
  let opened: LmdbStores | null = null;
  const close = async () => {
    await opened?.[Symbol.asyncDispose]();
    opened = null;
  };
  const open = async () => {
    opened = await openLmdb({
      dataDir,
      now: () => clock.nowMs,
      onFatal: (error) => {
        throw error;
      },
    });
    return opened;
  };
  const reopen = async () => {
    await close();
    return open();
  };
  return {
    async open(given) {
      clock = given;
      parent = await newParent();
      dataDir = join(parent, 'data');
      return open();
    },
    reopen,
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
