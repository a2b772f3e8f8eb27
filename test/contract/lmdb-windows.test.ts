import { describe, expect, test } from 'vitest';
import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import { entriesFor } from '../support/store-entries.ts';
import { newDataDir, openDir } from './lmdb-factory.ts';

const HOUR_MS = 60 * 60 * 1000;
const START_MS = Date.UTC(2026, 10, 21);

/** A directory with a clock, opened for one piece of work at a time. */
async function newStore() {
  const dataDir = await newDataDir();
  const clock = { nowMs: START_MS };
  return {
    clock,
    async using<T>(work: (ledgers: LedgerStore) => Promise<T>): Promise<T> {
      await using stores = await openDir(dataDir, () => clock.nowMs);
      return await work(stores.ledgers);
    },
    async countKeys(): Promise<number> {
      const tables = openTables(dataDir);
      const counts = tables.commands.map((table) => table.getKeysCount({}));
      await tables.root.close();
      return counts.reduce((sum, count) => sum + count, 0);
    },
  };
}

async function commandKey(ledgers: LedgerStore, id: string): Promise<void> {
  const claim = await ledgers.claim('ledger');
  const projections = () => [{ kind: 'command', command: { id, fingerprint: id, permanent: false } }] as const;
  await ledgers.append(claim, entriesFor(claim, 1, { projections }));
}

const named = (id: string) => ({ id, permanent: false });
const ids = (count: number) => Array.from({ length: count }, (_, at) => `c${at}`);

describe('windows of command keys', () => {
  test.each([false, true])(
    'keep keys for 24 hours at any time of day and remove older ones (restarts: %s)',
    async (restarts) => {
      const store = await newStore();
      const everyMs = 5 * HOUR_MS;
      const run = async (ledgers: LedgerStore, at: number) => {
        await commandKey(ledgers, `c${at}`);
        const found = await ledgers.findCommands('ledger', ids(at + 1).map(named));
        for (let age = 0; age <= at; age++)
          if (age * everyMs <= 24 * HOUR_MS) expect(found.has(`c${at - age}`)).toBe(true);
          else if (age * everyMs >= 48 * HOUR_MS) expect(found.has(`c${at - age}`)).toBe(false);
      };
      const steps = ids(40).map((_, at) => async (ledgers: LedgerStore) => {
        await run(ledgers, at);
        store.clock.nowMs += everyMs;
      });
      if (restarts) for (const step of steps) await store.using(step);
      else
        await store.using(async (ledgers) => {
          for (const step of steps) await step(ledgers);
        });
      expect(await store.countKeys()).toBeLessThanOrEqual(10);
    },
  );

  test('keep new keys only after a long pause', async () => {
    const store = await newStore();
    await store.using((ledgers) => commandKey(ledgers, 'old'));
    store.clock.nowMs += 24 * HOUR_MS;
    await store.using((ledgers) => commandKey(ledgers, 'older'));
    store.clock.nowMs += 400 * 24 * HOUR_MS;
    await store.using((ledgers) => commandKey(ledgers, 'new'));
    store.clock.nowMs += 24 * HOUR_MS;
    const found = await store.using(async (ledgers) => {
      await commandKey(ledgers, 'newer');
      return ledgers.findCommands('ledger', ['old', 'older', 'new', 'newer'].map(named));
    });
    expect([...found.keys()]).toEqual(['new', 'newer']);
  });

  test('lose no key when the clock is set back', async () => {
    const store = await newStore();
    await store.using(async (ledgers) => {
      await commandKey(ledgers, 'before');
      store.clock.nowMs -= 72 * HOUR_MS;
      await commandKey(ledgers, 'back');
      store.clock.nowMs += 73 * HOUR_MS;
      await commandKey(ledgers, 'after');
    });
    const found = await store.using((ledgers) =>
      ledgers.findCommands('ledger', ['before', 'back', 'after'].map(named)),
    );
    expect([...found.keys()]).toEqual(['before', 'back', 'after']);
  });
});
