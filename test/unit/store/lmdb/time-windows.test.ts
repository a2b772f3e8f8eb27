import { afterEach, expect, test, vi } from 'vitest';
import { Commits } from '../../../../src/store/lmdb/commits.ts';
import { openTables } from '../../../../src/store/lmdb/tables.ts';
import { removedAtOnceMax, TimeWindows } from '../../../../src/store/lmdb/time-windows.ts';
import { testDir } from '../../../support/running-node.ts';

const entries = 3 * removedAtOnceMax + 1;
const keyOf = (at: number) => Buffer.from(`key ${at}`);

/** Windows of 1 ms in three tables. */
function openWindows(dataDir: string) {
  const tables = openTables(dataDir);
  const commits = new Commits(() => {});
  const windows = new TimeWindows('commands', 1, tables.commands, tables.facts, commits);
  const heldIn = (slot: number) => tables.facts.get(Buffer.from(`commands-${slot}`));
  const close = async () => {
    commits.close();
    await tables.root.close();
  };
  return { tables, commands: tables.commands, windows, heldIn, close };
}

/** Fills window 3, whose table has slot 0. */
async function fillWindow(dataDir: string) {
  const opened = openWindows(dataDir);
  const table = opened.windows.at(3);
  await table.batch(() => {
    for (let at = 0; at < entries; at++) table.put(keyOf(at), Buffer.of(1));
  });
  return opened;
}

afterEach(() => {
  vi.restoreAllMocks();
});

test.each(['by the window after the next', 'by age'])(
  'no commit empties a large table of a window that ended %s',
  async (cause) => {
    const { commands, windows, heldIn, close } = await fillWindow(testDir());
    const [table] = commands;
    if (table === undefined) throw new Error('no table');
    const clear = table.clearAsync.bind(table);
    const cleared: number[] = [];
    vi.spyOn(table, 'clearAsync').mockImplementation(() => {
      cleared.push(table.getKeysCount({}));
      return clear();
    });
    windows.at(4);
    if (cause === 'by age') await windows.drop(5);
    else windows.at(5);
    await vi.waitFor(() => expect(heldIn(0)).toBe('-1'));
    expect(table.getKeysCount({})).toBe(0);
    expect(cleared).toEqual([1]);
    await close();
  },
);

test('the entries of a window are not read once it is being emptied', async () => {
  const { commands, windows, close } = await fillWindow(testDir());
  windows.at(4);
  expect(windows.tables()).toContain(commands[0]);
  windows.at(5);
  expect(windows.tables()).not.toContain(commands[0]);
  await close();
});

test('a table that was emptied in part when the process ended is emptied by the next process', async () => {
  const dataDir = testDir();
  const first = await fillWindow(dataDir);
  first.windows.at(4);
  first.windows.at(5);
  await first.close();
  const next = openWindows(dataDir);
  expect(next.heldIn(0)).toBe('3');
  expect(next.commands[0]?.getKeysCount({})).toBe(entries - removedAtOnceMax);
  next.windows.at(5);
  await vi.waitFor(() => expect(next.heldIn(0)).toBe('-1'));
  expect(next.commands[0]?.getKeysCount({})).toBe(0);
  await next.close();
});

test('a window that begins while its table is being emptied keeps its own entries', async () => {
  const { windows, heldIn, close } = await fillWindow(testDir());
  windows.at(4);
  windows.at(5);
  const table = windows.at(6);
  await table.put(keyOf(0), Buffer.of(2));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(heldIn(0)).toBe('6');
  expect([...table.getRange()].map(({ value }) => [...value])).toEqual([[2]]);
  expect(windows.tables()).toContain(table);
  await close();
});
