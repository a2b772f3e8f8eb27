import { expect, test } from 'vitest';
import type { LedgerEvent } from '../../../../src/domain/event/event.ts';
import { formatRow } from '../../../../src/domain/event/row.ts';
import { append, createMaster, ledgerId, openLedger } from '../../../support/commands.ts';
import { pageOf, storeOf, walkOf } from '../../../support/event-lists.ts';
import { chainOf, storeWith } from '../../../support/world.ts';

const source = { kind: 'ledger', ledgerId, scopes: null } as const;
const largeEvents = 600;
const mib = 1024 * 1024;

const chain = chainOf(
  openLedger(),
  createMaster(),
  append({ eventType: 'LARGE', payload: `{"text":"${'x'.repeat(260_000)}"}` }),
);
const large = chain.events.at(-1) as LedgerEvent;

/**
 * A ledger of nothing but one large event, over and over; `turnsMib` has what was read of it in each turn of the event
 * loop.
 */
async function largeLedger() {
  const turnsMib: number[] = [0];
  let isNew = false;
  const rowOf = (seq: number) => ({ seq, row: formatRow({ ...large, seq }) });
  const store = storeWith(await storeOf(chain), {
    head: async () => ({ seq: largeEvents - 1, hash: large.hash }),
    read: async (_ledger, from, limit) => {
      const count = Math.max(0, Math.min(limit, largeEvents - from));
      const rows = Array.from({ length: count }, (_, at) => rowOf(from + at));
      if (isNew) turnsMib.push(0);
      isNew = false;
      setImmediate(() => {
        isNew = true;
      });
      turnsMib.push((turnsMib.pop() ?? 0) + rows.reduce((sum, { row }) => sum + row.length / mib, 0));
      return rows;
    },
  });
  return { store, turnsMib };
}

test('others have their turns while large events are looked through', async () => {
  const { store, turnsMib } = await largeLedger();
  await pageOf(store, source, { eventType: 'NOPE' });
  expect(turnsMib.length).toBeGreaterThan(6);
  expect(Math.max(...turnsMib)).toBeLessThan(7);
});

test.each(['asc', 'desc'])(
  'a filtered page ends after 64 MiB looked through, and its cursor leads on (%s)',
  async (order) => {
    const { store, turnsMib } = await largeLedger();
    const first = await pageOf(store, source, { order, eventType: 'NOPE' });
    expect(first.events).toEqual([]);
    expect(first.nextCursor).not.toBeNull();
    const readMib = turnsMib.reduce((sum, part) => sum + part, 0);
    expect(readMib).toBeGreaterThan(63);
    expect(readMib).toBeLessThan(64 + 2 * 7);
    expect((await walkOf(store, source, { order, eventType: 'NOPE' })).pages).toHaveLength(3);
    const { seqs } = await walkOf(store, source, { order, eventType: 'LARGE', offset: largeEvents - 3 });
    expect(seqs).toEqual(order === 'asc' ? [597, 598, 599] : [2, 1, 0]);
  },
);

test('a page takes no more of the largest events from the store than it may hold and one turn more', async () => {
  const { store, turnsMib } = await largeLedger();
  const { events } = await pageOf(store, source, {});
  expect(events).toHaveLength(8);
  expect(turnsMib.reduce((sum, part) => sum + part, 0)).toBeLessThan(9);
});
