import { describe, expect, test } from 'vitest';
import { batchSalts, childLedgers, countBatches } from '../support/store-lmdb-batches.ts';
import { acknowledged, startChild } from '../support/store-lmdb-process.ts';
import { madeDataDir, newDataDir, openDir } from './lmdb-factory.ts';

/** Milliseconds after the first acknowledgement at which the writing process is killed. */
const KILLED_AFTER_MS = [0, 3, 17, 40, 85, 130];

describe('LMDB stores of a process that dies', () => {
  test('keep every acknowledged append and no partial one after kill -9, and the next process continues', async () => {
    const dataDir = await newDataDir();
    const known = new Map<string, number>();
    for (const delayMs of KILLED_AFTER_MS) {
      await using child = startChild(['append', dataDir]);
      await child.line('ack');
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      await child.kill();
      const acked = acknowledged(child.lines);
      await using stores = await openDir(dataDir);
      for (const ledgerId of childLedgers) {
        const batches = await countBatches(stores.ledgers, ledgerId);
        expect(batches).toBeGreaterThanOrEqual(Math.max(acked.get(ledgerId) ?? 0, known.get(ledgerId) ?? 0));
        known.set(ledgerId, batches);
      }
    }
    expect(Math.max(...known.values())).toBeGreaterThan(KILLED_AFTER_MS.length);
  }, 60_000);

  test('written by two processes past the lock have no fork', async () => {
    const dataDir = await madeDataDir();
    const count = 60;
    await using first = startChild(['compete', dataDir, 'first', `${count}`]);
    await using second = startChild(['compete', dataDir, 'second', `${count}`]);
    await Promise.all([first.ended(), second.ended()]);
    // Shows whether a process ended early, or what it acknowledged is not there.
    expect([first.lines.length, second.lines.length]).toEqual([count, count]);
    await using stores = await openDir(dataDir);
    const ledgerId = childLedgers[0] ?? '';
    expect(await countBatches(stores.ledgers, ledgerId)).toBe(2 * count);
    const salts = await batchSalts(stores.ledgers, ledgerId);
    for (const line of [...first.lines, ...second.lines]) {
      const [, name, batch] = line.split(' ');
      expect(salts[Number(batch)]).toBe(name);
    }
  }, 60_000);
});
