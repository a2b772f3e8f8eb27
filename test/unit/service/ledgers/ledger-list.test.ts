import { expect, test } from 'vitest';
import type { Call } from '../../../../src/service/calls/call.ts';
import { examinedMax, ledgerService } from '../../../../src/service/ledgers/ledgers.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { LedgerStore, Page } from '../../../../src/store/ledger-store.ts';

/** The list of an actor that is a party of so many ledgers, named by their numbers; `read` counts the lines read or passed over. */
function listOf(count: number, read = { lines: 0 }) {
  const store: Pick<LedgerStore, 'lines'> = {
    lines: async (_, { from, limit, offset = 0, descending = false }: Page) => {
      const [first, step] = [from === undefined ? (descending ? count - 1 : 0) : Number(from), descending ? -1 : 1];
      const numbers = Array.from({ length: limit }, (_, at) => first + (offset + at) * step);
      const there = numbers.filter((number) => number >= 0 && number < count);
      read.lines += offset + there.length;
      return there.map((number) => {
        const ledgerId = String(number);
        return { order: ledgerId, value: JSON.stringify({ ledgerId, role: 'buyer' }) };
      });
    },
  };
  const reading = {
    ledgerFacts: async () => ({ type: 'ORDER' }),
    ledgerStatus: async (id: string) => (id === String(count - 1) ? 'CLOSED' : 'OPEN'),
  };
  const caller = { actorId: 'an actor' };
  const parts = [store, {}, {}, reading, {}, {}, {}] as unknown as Parameters<typeof ledgerService>;
  const { listLedgers } = ledgerService(...parts);
  return async (query: object) => {
    const { ledgers } = await listLedgers(
      query as Parameters<typeof listLedgers>[0],
      { caller, walk: unboundedWalk() } as unknown as Call,
    );
    return ledgers.map(({ id }) => Number(id));
  };
}

const refused = { code: 'invalid_argument', details: { field: 'offset', limit: examinedMax } };

test('a page that more ledgers stand before than are looked through is refused, and not shown empty', async () => {
  const list = listOf(examinedMax + 10);
  expect(await list({ offset: examinedMax - 2, limit: 2 })).toEqual([examinedMax - 2, examinedMax - 1]);
  await expect(list({ offset: examinedMax - 1, limit: 2 })).rejects.toMatchObject(refused);
  await expect(list({ offset: 100_000 })).rejects.toMatchObject(refused);
  expect(await list({ limit: 1, order: 'desc' })).toEqual([examinedMax + 9]);
});

test('a filter that nothing fits among as many is refused too, and from the other end it finds', async () => {
  const read = { lines: 0 };
  const list = listOf(examinedMax + 10, read);
  await expect(list({ status: 'CLOSED' })).rejects.toMatchObject(refused);
  expect(read.lines).toBeLessThan(1.01 * examinedMax);
  await expect(list({ status: 'CLOSED', order: 'desc', limit: 2 })).rejects.toMatchObject(refused);
  expect(await list({ status: 'CLOSED', order: 'desc', limit: 1 })).toEqual([examinedMax + 9]);
});

test('the end of a list is one where no more are there', async () => {
  expect(await listOf(examinedMax - 1)({ offset: 100_000 })).toEqual([]);
  expect(await listOf(3)({ status: 'CLOSED' })).toEqual([2]);
});
