import { expect, test } from 'vitest';
import { names, seqOrder } from '../../../../src/domain/event/projection.ts';
import { isoTime } from '../../../../src/domain/values/time.ts';
import type { ListMastersRequest } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { checkMasterQuery, readMasterPage } from '../../../../src/service/masters/master-list.ts';
import { LedgerReading } from '../../../../src/service/reading/ledger-reading.ts';
import { examinedMax } from '../../../../src/service/reading/list-walk.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { LedgerStore } from '../../../../src/store/ledger-store.ts';
import { chainEntries } from '../../../support/chain-entries.ts';
import { closeMaster, createMaster, ledgerId, openLedger, supplier, uuid } from '../../../support/commands.ts';
import { MemoryLedgerStore } from '../../../support/memory-store/ledger-store.ts';
import { Chain, startMs, storeWith } from '../../../support/world.ts';

const masterIdOf = (number: number) => uuid(0x1000 + number);
const timeOf = (number: number) => isoTime(startMs + 1_000 * number);

/** A ledger with this many masters, a second apart. */
async function ledgerWith(count: number) {
  const chain = new Chain();
  const store = new MemoryLedgerStore(() => startMs);
  const claim = await store.claim(ledgerId);
  let written = 0;
  let made = 0;
  const write = async () => {
    await store.append(claim, chainEntries(chain.events).slice(written));
    written = chain.events.length;
  };
  const open = async (more: number) => {
    for (let left = more; left > 0; left -= 1, made += 1) {
      const [businessRef, scope] = [`PO-${made % 3}`, made % 2 === 0 ? 'ORDER' : 'PROCESS'];
      chain.run(createMaster({ masterId: masterIdOf(made), businessRef, scope }), timeOf(made));
    }
    await write();
  };
  chain.run(openLedger());
  await open(count);
  const close = async (number: number) => {
    chain.run(closeMaster({ masterId: masterIdOf(number) }), timeOf(made));
    await write();
  };
  return { store, open, close };
}

/** Lists the masters of the ledger, by their numbers. `readable`: those of a delegate. */
function listing(store: LedgerStore, readable: readonly string[] | null = null) {
  const reading = new LedgerReading(store, () => startMs);
  return async (request: Partial<ListMastersRequest>) => {
    const query = checkMasterQuery({ ledgerId, ...request } as ListMastersRequest);
    const { items, nextCursor } = await readMasterPage(unboundedWalk(), store, reading, ledgerId, readable, query);
    return { items, nextCursor, numbers: items.map((master) => Number.parseInt(master.uuid.slice(-8), 16) - 0x1000) };
  };
}

const upTo = (count: number, start = 0) => Array.from({ length: count }, (_, at) => start + at);

test('masters show what they are', async () => {
  const { store } = await ledgerWith(2);
  const { items } = await listing(store)({});
  const shared = { status: 'OPEN', ledgerId, createdByActorId: supplier };
  expect(items).toEqual([
    { uuid: masterIdOf(0), scope: 'ORDER', businessRef: 'PO-0', createdAt: timeOf(0), ...shared },
    { uuid: masterIdOf(1), scope: 'PROCESS', businessRef: 'PO-1', createdAt: timeOf(1), ...shared },
  ]);
});

for (const [who, readable] of [
  ['a party', null],
  ['a delegate of masters', upTo(12).map(masterIdOf)],
] as const)
  test(`${who} filters masters by reference, scope, status and time`, async () => {
    const { store, close } = await ledgerWith(12);
    await close(4);
    const list = listing(store, readable);
    const numbersOf = async (request: Partial<ListMastersRequest>) => (await list(request)).numbers;
    expect(await numbersOf({ businessRef: 'PO-1' })).toEqual([1, 4, 7, 10]);
    expect(await numbersOf({ businessRef: 'PO-1', scope: 'PROCESS', order: 'desc' })).toEqual([7, 1]);
    expect(await numbersOf({ status: 'CLOSED' })).toEqual([4]);
    expect(await numbersOf({ businessRef: 'PO-1', status: 'OPEN', offset: 1 })).toEqual([7, 10]);
    expect(await numbersOf({ businessRef: 'po-1' })).toEqual([]);
    expect(await numbersOf({ from: timeOf(3), to: timeOf(5) })).toEqual([3, 4, 5]);
    expect(await numbersOf({ from: timeOf(3), to: timeOf(5), order: 'desc', offset: 1 })).toEqual([4, 3]);
    expect(await numbersOf({ from: timeOf(10) })).toEqual([10, 11]);
    expect(await numbersOf({ from: timeOf(12) })).toEqual([]);
    expect(await numbersOf({ to: timeOf(1), scope: 'PROCESS' })).toEqual([1]);
  });

for (const order of ['asc', 'desc'])
  test(`cursors give each master once in order ${order} while others are opened`, async () => {
    const { store, open } = await ledgerWith(40);
    const list = listing(store);
    const numbers: number[] = [];
    let page = await list({ order, limit: 7 });
    for (;;) {
      numbers.push(...page.numbers);
      if (page.nextCursor === null) break;
      if (order === 'desc') await open(2);
      page = await list({ order, limit: 7, cursor: page.nextCursor });
    }
    expect(numbers).toEqual(order === 'asc' ? upTo(40) : upTo(40).toReversed());
  });

test('an ascending walk by cursors also reaches the masters that are opened meanwhile', async () => {
  const { store, open } = await ledgerWith(5);
  const list = listing(store);
  const first = await list({ limit: 3 });
  await open(2);
  const second = await list({ limit: 4, cursor: String(first.nextCursor) });
  expect([second.numbers, second.nextCursor]).toEqual([[3, 4, 5, 6], null]);
});

test('a filtered walk by cursors keeps to its filter, and an offset page names a cursor too', async () => {
  const { store } = await ledgerWith(12);
  for (const readable of [null, upTo(12).map(masterIdOf)]) {
    const list = listing(store, readable);
    const first = await list({ businessRef: 'PO-2', limit: 1, offset: 1 });
    expect(first.numbers).toEqual([5]);
    const second = await list({ businessRef: 'PO-2', limit: 1, cursor: String(first.nextCursor) });
    expect(second.numbers).toEqual([8]);
    const third = await list({ businessRef: 'PO-2', limit: 5, cursor: String(second.nextCursor) });
    expect([third.numbers, third.nextCursor]).toEqual([[11], null]);
    const unfiltered = await list({ limit: 3, offset: 2 });
    expect((await list({ limit: 2, cursor: String(unfiltered.nextCursor) })).numbers).toEqual([5, 6]);
  }
});

test('a delegate that loses masters amid a walk goes on with those that are left', async () => {
  const { store } = await ledgerWith(6);
  const { nextCursor } = await listing(store, upTo(6).map(masterIdOf))({ limit: 2 });
  const left = [0, 3, 5].map(masterIdOf);
  expect((await listing(store, left)({ cursor: String(nextCursor) })).numbers).toEqual([3, 5]);
});

test('a cursor is refused once the caller reads another part of the ledger, and so is one of another list', async () => {
  const { store } = await ledgerWith(3);
  const [whole, granted] = [listing(store), listing(store, upTo(3).map(masterIdOf))];
  const refused = { code: 'invalid_argument', details: { field: 'cursor' } };
  const cursor = String((await whole({ limit: 1 })).nextCursor);
  await expect(granted({ cursor })).rejects.toMatchObject(refused);
  await expect(whole({ cursor: String((await granted({ limit: 1 })).nextCursor) })).rejects.toMatchObject(refused);
  await expect(whole({ cursor, order: 'desc' })).rejects.toMatchObject(refused);
  await expect(whole({ cursor, offset: 1 })).rejects.toMatchObject({ details: { field: 'offset' } });
  for (const bad of ['', 'x', Buffer.from('a1').toString('base64url')])
    await expect(whole({ cursor: bad })).rejects.toMatchObject(refused);
});

test('a filtered page looks through a bounded number of masters, and one after a cursor ends there', async () => {
  const count = examinedMax + 5;
  const inner = (await ledgerWith(1)).store;
  const store = storeWith(inner, {
    head: async () => ({ seq: count + 1, hash: '' }),
    lines: async (list, { from, offset = 0, limit, descending }) => {
      expect([list, descending]).toEqual([names.mastersOf(ledgerId), false]);
      const first = Number(from) + offset;
      return upTo(Math.max(0, Math.min(limit, count - first)), first).map((seq) => ({
        order: seqOrder(seq),
        value: JSON.stringify({ masterId: masterIdOf(seq) }),
      }));
    },
    cell: async (key) => {
      const masterId = key.slice('master:'.length);
      if (key !== names.master(masterId)) return null;
      const isLast = masterId === masterIdOf(count - 1);
      const facts = { masterId, ledgerId, businessRef: isLast ? 'LAST' : 'PO', createdSeq: 1, createdAt: timeOf(0) };
      return { version: 1, value: JSON.stringify(facts) };
    },
  });
  const list = listing(store);
  const refusal = await list({ businessRef: 'LAST' }).then(
    () => expect.unreachable(),
    (error: { code: string; details: { next_cursor: string } }) => error,
  );
  expect(refusal).toMatchObject({ code: 'invalid_argument', details: { field: 'offset', limit: examinedMax } });
  const cursor = refusal.details.next_cursor;
  expect((await list({ businessRef: 'LAST', cursor })).numbers).toEqual([count - 1]);
  const start = Buffer.from('a').toString('base64url');
  const empty = await list({ businessRef: 'LAST', cursor: start });
  expect(empty).toEqual({ items: [], numbers: [], nextCursor: cursor });
  expect((await list({ limit: 2, offset: examinedMax + 4 })).numbers).toEqual([count - 1]);
});

test('a line that cannot be read is passed over, and hides no other master', async () => {
  const { store } = await ledgerWith(3);
  const damaged = storeWith(store, {
    lines: async (list, page) =>
      (await store.lines(list, page)).map((line, at) => (at === 1 ? { ...line, value: '{}' } : line)),
  });
  expect((await listing(damaged)({})).numbers).toEqual([0, 2]);
});
