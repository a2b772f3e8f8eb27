import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import { boundedPage } from '../../../../src/store/cassandra/session/bounded-page.ts';
import { readPages } from '../../../../src/store/cassandra/session/paged-read.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';
import { TextRoom } from '../../../../src/store/cassandra/session/text-room.ts';
import type { StoredEntry } from '../../../../src/store/ledger-store.ts';
import { pageCharsMax } from '../../../../src/store/pages.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { SimulatedTables } from '../../../simulation/tables.ts';
import { entriesAfter, headOf } from '../../../support/store-entries.ts';

const ledgerId = 'the-ledger';

/** A ledger in batches of these sizes, and what the store reads of it. */
async function ledgerOf(batches: readonly number[], row: (seq: number) => string, bucketEvents: number) {
  const tables = new SimulatedTables();
  const direct = directSession(tables);
  const counts = { reads: 0 };
  const session: CqlSession = {
    ...direct,
    read: (statement, options) => {
      counts.reads += 1;
      if (counts.reads > 5_000) throw new Error('reads without end');
      return direct.read(statement, options);
    },
  };
  const store = new CassandraLedgerStore({ session, now: () => 0, random: randomBytes, bucketEvents });
  const claim = await store.claim(ledgerId);
  let head = claim.head;
  const all: StoredEntry[] = [];
  for (const size of batches) {
    const entries = entriesAfter(head, size, { row, projections: () => [{ kind: 'scope', scope: 's' }] });
    await store.append(claim, entries);
    head = headOf(entries);
    all.push(...entries.map(({ seq, row }) => ({ seq, row })));
  }
  counts.reads = 0;
  return { store, all, counts, tables };
}

function loseRow(tables: SimulatedTables, seq: number): void {
  const copy = tables.copy();
  for (const [, { lines }] of copy.get('ledger_event') ?? []) {
    const at = lines.findIndex(({ place }) => place[0] === '' && Number(place[1]) === seq);
    if (at >= 0) lines.splice(at, 1);
  }
  tables.restore(copy, 'ledger_event');
}

function charsIn(entries: readonly StoredEntry[]): number {
  return entries.reduce((sum, { row }) => sum + row.length, 0);
}

/** All pages from `first` on, each from behind the last one. */
async function pagesOf(read: (from: number) => Promise<StoredEntry[]>, first: number, step: number, charsMax: number) {
  const pages: StoredEntry[][] = [];
  for (let from = first; ; ) {
    const page = await read(from);
    pages.push(page);
    const last = page.at(-1);
    if (last === undefined || charsIn(page) < charsMax) return pages;
    from = last.seq + step;
  }
}

test.each(Array.from({ length: 40 }, (_, seed) => seed))(
  'pages are whole and within their bound, whatever the batches and sizes of rows (%i)',
  async (seed) => {
    let state = seed + 1;
    const random = (below: number): number => {
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    const bucketEvents = 4;
    const [charsMax, rowChars] = [100, 60];
    const sizes = Array.from({ length: 80 }, () => (random(3) === 0 ? rowChars : 1 + random(8)));
    const batches = Array.from({ length: 16 }, () => 1 + random(4));
    const { store, all, counts, tables } = await ledgerOf(batches, (seq) => 'x'.repeat(sizes[seq] ?? 1), bucketEvents);
    const lost = 1 + random(all.length - 2);
    loseRow(tables, lost);
    const left = all.filter(({ seq }) => seq !== lost);
    for (let from = 0; from < all.length; from++) {
      const ways = [
        [1, (at: number) => store.read(ledgerId, at, 100, charsMax)],
        [1, async (at: number) => (await store.readScope(ledgerId, 's', { from: at, limit: 100, charsMax })).entries],
        [
          -1,
          async (at: number) =>
            (await store.readScope(ledgerId, 's', { from: at, limit: 100, charsMax, descending: true })).entries,
        ],
      ] as const;
      for (const [step, read] of ways) {
        counts.reads = 0;
        const pages = await pagesOf(read, from, step, charsMax);
        for (const page of pages) expect(charsIn(page)).toBeLessThan(charsMax + rowChars);
        const expected = step > 0 ? left.filter(({ seq }) => seq >= from) : left.filter(({ seq }) => seq <= from);
        expect(pages.flat()).toEqual(step > 0 ? expected : expected.toReversed());
      }
    }
  },
);

test('a page of 56 small rows and 160 of 513 KiB has 1 MiB and one row', async () => {
  const large = 513 * 1024;
  const row = (seq: number) => (seq < 56 ? 'small' : 'x'.repeat(large));
  const { store, counts } = await ledgerOf([56, ...Array.from({ length: 160 }, () => 1)], row, 1_024);
  expect(charsIn(await store.read(ledgerId, 16, 250, pageCharsMax))).toBeLessThan(pageCharsMax + large);
  expect(counts.reads).toBeLessThanOrEqual(3);
});

test('a walk through 10,000 small events asks Cassandra four times for 250 of them', async () => {
  const batches = Array.from({ length: 200 }, () => 50);
  const { store, counts } = await ledgerOf(batches, (seq) => `${seq}`.padEnd(1_000), 1_024);
  for (let from = 0; from < 10_000; from += 250)
    expect(await store.read(ledgerId, from, 250, pageCharsMax)).toHaveLength(250);
  // At the end of a bucket also for its head, and for the bucket behind it.
  expect(counts.reads).toBeLessThanOrEqual(4 * 40 + 3 * 9);
});

/** A client of the driver whose answers have these rows, and which fails first so many times behind its rows. */
function clientOf(rows: readonly Row[], failures: number) {
  const asked: unknown[] = [];
  let left = failures;
  const eachRow = (
    _cql: string,
    _params: unknown,
    options: unknown,
    each: (n: number, row: Row) => void,
    done: (error: Error | undefined, result: { readonly pageState: string | null }) => void,
  ) => {
    asked.push(options);
    for (const [n, row] of rows.entries()) each(n, row);
    if (left-- > 0) done(new Error('the connection broke'), { pageState: null });
    else done(undefined, { pageState: 'next' });
    // After its time is over the driver goes on to pass rows on.
    if (left >= 0) for (const [n, row] of rows.entries()) each(n, row);
  };
  return { asked, client: { eachRow } as unknown as Parameters<typeof boundedPage>[0] };
}

const statement = { cql: 'SELECT row FROM t', params: [] };
const rows = ['aa', 'bbb', 'c', 'd'].map((row) => ({ row }));

test('rows behind the one that fills the room are dropped, and no further page is read', async () => {
  const { client, asked } = clientOf(rows, 0);
  const room = new TextRoom('row', 5);
  expect(await readPages(() => boundedPage(client, statement, {}, room, 1_000)(), room)).toEqual(rows.slice(0, 2));
  expect(asked).toHaveLength(1);
});

test('a page that is read again after a failure has its room again, and asks for fewer rows', async () => {
  const { client, asked } = clientOf(rows, 1);
  const room = new TextRoom('row', 8);
  const read = boundedPage(client, statement, { fetchSize: 64 }, room, 1_000);
  await expect(read()).rejects.toThrow('broke');
  expect((await read()).rows).toEqual(rows);
  expect(asked).toEqual([{ fetchSize: 64 }, { fetchSize: 8 }]);
  expect(room.takes({ row: 'e' })).toBe(true);
  expect(room.isFull).toBe(true);
});

test('an answer that stops behind its first row ends in time, and one that fills the room at once', async () => {
  const eachRow = (_cql: string, _params: unknown, _options: unknown, each: (n: number, row: Row) => void) =>
    each(0, { row: 'aa' });
  const client = { eachRow } as unknown as Parameters<typeof boundedPage>[0];
  await expect(boundedPage(client, statement, {}, new TextRoom('row', 3), 10)()).rejects.toThrow('in time');
  const { rows } = await boundedPage(client, statement, {}, new TextRoom('row', 2), 10)();
  expect(rows).toEqual([{ row: 'aa' }]);
});

test('the texts of all columns take up room, or those of one', () => {
  const row = { order: 'abc', value: 'de', n: 1n };
  const [all, one] = [new TextRoom(null, 5), new TextRoom('value', 3)];
  for (const room of [all, one]) expect(room.takes(row)).toBe(true);
  expect([all.isFull, one.isFull]).toEqual([true, false]);
});
