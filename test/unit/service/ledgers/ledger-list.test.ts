import { expect, test } from 'vitest';
import type { LedgerFacts } from '../../../../src/domain/event/facts.ts';
import type { LedgerLine } from '../../../../src/domain/event/projection.ts';
import { isoTime } from '../../../../src/domain/values/time.ts';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import { ledgerService } from '../../../../src/service/ledgers/ledgers.ts';
import { examinedMax } from '../../../../src/service/reading/list-walk.ts';
import { unboundedWalk } from '../../../../src/service/walking/walk.ts';
import type { LedgerStore, Line, Page } from '../../../../src/store/ledger-store.ts';
import { startMs } from '../../../support/world.ts';

const actorId = 'an actor';
const other = uuidV7(0, Buffer.alloc(10, 1));

/** The ledger with this number, opened so many milliseconds after the first one. */
const idOf = (number: number) => uuidV7(startMs + number, Buffer.alloc(10));
const timeOf = (number: number) => isoTime(startMs + number);
const numberOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) - startMs;
const orderOf = (number: number) => `${timeOf(number)}|${idOf(number)}`;

const partyLine = (number: number): Line => ({
  order: orderOf(number),
  value: JSON.stringify({ ledgerId: idOf(number), role: 'buyer' } satisfies LedgerLine),
});
const grantLine = (number: number, objectNumber: number): Line => ({
  order: `${orderOf(number)}|master|${idOf(objectNumber)}`,
  value: JSON.stringify({
    ledgerId: idOf(number),
    role: 'delegate',
    scope: 'master',
    objectId: idOf(objectNumber),
  } satisfies LedgerLine),
});
const numbered = (count: number, start = 0) => Array.from({ length: count }, (_, at) => partyLine(start + at));

/** How many lines, of which the first ones alone fit, fit. */
function countWhile(lines: readonly Line[], fits: (line: Line) => boolean): number {
  let [count, end] = [0, lines.length];
  while (count < end) {
    const middle = (count + end) >> 1;
    const line = lines[middle];
    if (line !== undefined && fits(line)) count = middle + 1;
    else end = middle;
  }
  return count;
}

/** The list of an actor with these lines; `read` counts the lines read or passed over. */
function listOf(lines: readonly Line[], read = { lines: 0 }) {
  let ascending: readonly Line[] = [];
  let descending: readonly Line[] = [];
  const put = (more: readonly Line[]): void => {
    ascending = [...ascending, ...more].toSorted((one, two) => (one.order < two.order ? -1 : 1));
    descending = ascending.toReversed();
  };
  put(lines);
  const store: Pick<LedgerStore, 'lines'> = {
    lines: async (_, { from, limit, offset = 0, descending: isDescending = false }: Page) => {
      const inOrder = isDescending ? descending : ascending;
      const isBefore = ({ order }: Line) => from !== undefined && (isDescending ? order > from : order < from);
      const start = countWhile(inOrder, isBefore) + offset;
      const found = inOrder.slice(start, start + limit);
      read.lines += offset + found.length;
      return found;
    },
  };
  /** The last ledger is closed, with another party, and of another type. */
  const isLast = (ledgerId: string) => ledgerId === idOf(lines.length - 1);
  const reading = {
    ledgerFacts: async (ledgerId: string): Promise<Partial<LedgerFacts>> => ({
      ledgerId,
      type: isLast(ledgerId) ? 'ENGAGEMENT' : 'ORDER',
      buyerActorId: actorId,
      supplierActorId: isLast(ledgerId) ? other : null,
      createdAt: timeOf(numberOf(ledgerId)),
    }),
    ledgerStatus: async (ledgerId: string) => (isLast(ledgerId) ? 'CLOSED' : 'OPEN'),
    grantCheck:
      () =>
      async ({ objectId }: LedgerLine) =>
        numberOf(objectId ?? '') % 2 === 1,
  };
  const parts = [store, {}, {}, reading, {}, {}, {}] as unknown as Parameters<typeof ledgerService>;
  const { listLedgers } = ledgerService(...parts);
  const page = async (query: object) => {
    const { ledgers, nextCursor = null } = await listLedgers(
      query as Parameters<typeof listLedgers>[0],
      { caller: { actorId }, walk: unboundedWalk() } as unknown as Call,
    );
    return { numbers: ledgers.map(({ id }) => numberOf(id)), nextCursor };
  };
  const list = async (query: object) => (await page(query)).numbers;
  return { page, list, put };
}

const refused = { code: 'invalid_argument', details: { field: 'offset', limit: examinedMax } };
const upTo = (count: number, start = 0) => Array.from({ length: count }, (_, at) => start + at);

test('a page that more ledgers stand before than are looked through is refused, and not shown empty', async () => {
  const { list } = listOf(numbered(examinedMax + 10));
  expect(await list({ offset: examinedMax - 2, limit: 2 })).toEqual([examinedMax - 2, examinedMax - 1]);
  await expect(list({ offset: examinedMax - 1, limit: 2 })).rejects.toMatchObject(refused);
  await expect(list({ offset: 100_000 })).rejects.toMatchObject(refused);
  expect(await list({ limit: 1, order: 'desc' })).toEqual([examinedMax + 9]);
});

test('a filter that nothing fits among as many is refused too, and from the other end it finds', async () => {
  const read = { lines: 0 };
  const { list } = listOf(numbered(examinedMax + 10), read);
  await expect(list({ status: 'CLOSED' })).rejects.toMatchObject(refused);
  expect(read.lines).toBeLessThan(1.01 * examinedMax);
  await expect(list({ counterpartyActorId: other, order: 'desc', limit: 2 })).rejects.toMatchObject(refused);
  for (const filter of [{ status: 'CLOSED' }, { ledgerType: 'ENGAGEMENT' }, { counterpartyActorId: other }])
    expect(await list({ ...filter, order: 'desc', limit: 1 })).toEqual([examinedMax + 9]);
});

test('the refusal names the cursor at which the refused page begins, and pages after a cursor end instead', async () => {
  const { page } = listOf(numbered(examinedMax + 10));
  const cursorOf = (query: object): Promise<string> =>
    page(query).then(
      () => expect.unreachable(),
      (error: { details: { next_cursor: string } }) => error.details.next_cursor,
    );
  const late = { status: 'CLOSED' };
  expect(await page({ ...late, cursor: await cursorOf(late) })).toEqual({
    numbers: [examinedMax + 9],
    nextCursor: null,
  });
  // What was found before the refusal comes with the first page after it.
  const early = { status: 'CLOSED', order: 'desc', limit: 2 };
  const first = await page({ ...early, cursor: await cursorOf(early) });
  expect(first).toEqual({ numbers: [examinedMax + 9], nextCursor: expect.any(String) });
  expect(await page({ ...early, cursor: first.nextCursor })).toEqual({ numbers: [], nextCursor: null });
  expect(await cursorOf({ offset: 100_000 })).toBeUndefined();
});

test('the end of a list is one where no more are there', async () => {
  expect(await listOf(numbered(examinedMax - 1)).page({ offset: 100_000 })).toEqual({ numbers: [], nextCursor: null });
  expect(await listOf(numbered(3)).page({ status: 'CLOSED' })).toEqual({ numbers: [2], nextCursor: null });
  expect(await listOf(numbered(3)).page({ limit: 3 })).toEqual({ numbers: [0, 1, 2], nextCursor: null });
});

test.each(['asc', 'desc'])('in order %s cursors give each ledger once while others are opened', async (order) => {
  const { page, put } = listOf(numbered(450, 1_000));
  const numbers: number[] = [];
  let next: { cursor?: string } | null = {};
  for (let round = 1; next !== null; round += 1) {
    const found = await page({ order, limit: 7, ...next });
    numbers.push(...found.numbers);
    next = found.nextCursor === null ? null : { cursor: found.nextCursor };
    // At the front of the list, in the direction of reading.
    put([partyLine(order === 'asc' ? 1_000 - round : 1_449 + round)]);
  }
  const all = upTo(450, 1_000);
  expect(numbers).toEqual(order === 'asc' ? all : all.toReversed());
});

test.each(['asc', 'desc'])('in order %s a ledger with many grants is listed once, on whichever page', async (order) => {
  const lines = upTo(6).flatMap((ledger) => upTo(3).map((object) => grantLine(ledger, 10 * ledger + object)));
  const { page } = listOf([...lines, partyLine(3), partyLine(20)]);
  const numbers: number[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const found = await page({ order, limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    numbers.push(...found.numbers);
    cursor = found.nextCursor;
  }
  const all = [0, 1, 2, 3, 4, 5, 20];
  expect(numbers).toEqual(order === 'asc' ? all : all.toReversed());
});

test.each(['asc', 'desc'])('in order %s a page may end amid the grants of a ledger and loses it not', async (order) => {
  // One ledger with more ended grants than a page looks through, and one that holds, at the far end.
  const ended = upTo(examinedMax + 20).map((object) => grantLine(5, 2 * object + 2));
  const holds = grantLine(5, order === 'asc' ? 2 * examinedMax + 99 : 1);
  const { page } = listOf([...ended, holds]);
  const refusal: { details: { next_cursor: string } } = await page({ order }).then(
    () => expect.unreachable(),
    (error) => error,
  );
  const found = await page({ order, cursor: refusal.details.next_cursor });
  expect(found.numbers).toEqual([5]);
});

test('a range of times bounds what is looked through', async () => {
  const read = { lines: 0 };
  const { page, list } = listOf(numbered(examinedMax + 10), read);
  const range = { from: timeOf(15_000), to: timeOf(15_002) };
  expect(await page(range)).toEqual({ numbers: [15_000, 15_001, 15_002], nextCursor: null });
  expect(await list({ ...range, order: 'desc' })).toEqual([15_002, 15_001, 15_000]);
  expect(read.lines).toBeLessThan(1_000);
  const first = await page({ ...range, limit: 2 });
  expect(await page({ ...range, limit: 2, cursor: first.nextCursor })).toEqual({ numbers: [15_002], nextCursor: null });
  const last = await page({ ...range, limit: 2, order: 'desc' });
  expect(await list({ ...range, limit: 2, order: 'desc', cursor: last.nextCursor })).toEqual([15_000]);
  expect(await list({ from: timeOf(examinedMax + 10) })).toEqual([]);
  expect(await list({ from: timeOf(2), to: timeOf(1) })).toEqual([]);
  expect(await list({ from: timeOf(examinedMax + 8) })).toEqual([examinedMax + 8, examinedMax + 9]);
  expect(await list({ to: timeOf(1), order: 'desc' })).toEqual([1, 0]);
});

test('a cursor of another list or order is refused, and so is an offset beside a cursor', async () => {
  const { page } = listOf(numbered(3));
  const { nextCursor: cursor } = await page({ limit: 1 });
  const text = (place: string) => Buffer.from(place).toString('base64url');
  await expect(page({ cursor, order: 'desc' })).rejects.toMatchObject({ details: { field: 'cursor' } });
  await expect(page({ cursor, offset: 1 })).rejects.toMatchObject({ details: { field: 'offset' } });
  for (const bad of ['', 'x', text('a1'), text('a0000000000000001'), text(`x${orderOf(1)}`), `${cursor}=`])
    await expect(page({ cursor: bad })).rejects.toMatchObject({ details: { field: 'cursor' } });
});

test('a line that cannot be read is passed over, and hides no other ledger', async () => {
  const damaged = ['', 'null', '{}'].map((value, at) => ({ order: `${orderOf(at)}|damaged`, value }));
  expect(await listOf([...numbered(3), ...damaged]).list({})).toEqual([0, 1, 2]);
});
