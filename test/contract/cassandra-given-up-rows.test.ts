import cassandra from 'cassandra-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { blockKind } from '../../src/service/webhooks/delivery-block.ts';
import { slotOf } from '../../src/service/webhooks/delivery-record.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import type { FindPage } from '../../src/store/record-store.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { newLedgerId } from '../support/store-entries.ts';
import { deliveriesAt, minuteMs, subscriptionId } from '../support/webhook-deliveries.ts';
import { suiteKeyspace } from './cassandra-factory.ts';

interface IndexRow {
  readonly line_order: string;
  readonly id: string;
  readonly put_token: string;
}

await describeOnCassandra('Index rows that writes have given up', (address) => {
  const { settings, open, faultyNode } = suiteKeyspace(address);
  let stores: CassandraStores;
  let client: cassandra.Client;
  beforeAll(async () => {
    stores = await open();
    const { contactPoints, localDataCenter, keyspace } = settings;
    client = new cassandra.Client({ contactPoints: [...contactPoints], localDataCenter, keyspace });
  });
  afterAll(() => client.shutdown());

  const lookup = { name: 'n', value: 'v' };
  const write = (kind: string, id: string, order: string) => {
    return { kind, id, replaces: 'absent', value: id, lookups: [{ ...lookup, order }] };
  };
  /** Leaves rows as a put does if its conditional write is not applied. */
  async function giveUp(
    kind: string,
    { name, value }: typeof lookup,
    rows: readonly (readonly [string, string, string])[],
  ) {
    const query = 'INSERT INTO record_lookup (kind, name, value, line_order, id, put_token) VALUES (?, ?, ?, ?, ?, ?)';
    const queries = rows.map((row) => ({ query, params: [kind, name, value, ...row] }));
    if (queries.length > 0) await client.batch(queries, { prepare: true, logged: false });
  }
  /** Tokens are hexadecimal: these sort before and after all of them. */
  const tokensAround = (count: number) =>
    Array.from({ length: count }, (_, at) => `${at}`.padStart(4, '0')).flatMap((number) => [
      `!${number}`,
      `~${number}`,
    ]);
  async function rowsOf(kind: string, { name, value }: typeof lookup): Promise<IndexRow[]> {
    const query = 'SELECT line_order, id, put_token FROM record_lookup WHERE kind = ? AND name = ? AND value = ?';
    return (await client.execute(query, [kind, name, value], { prepare: true })).rows as unknown as IndexRow[];
  }

  const places = [
    ['1', 'a'],
    ['1', 'b'],
    ['2', 'a-2'],
    ['3', 'c'],
  ] as const;
  const directions = [
    ['up', false],
    ['down', true],
  ] as const;

  test.each([1, 3])('hide no record in pages of %i, however many there are', async (limit) => {
    const findsAll = async (count: number) => {
      const kind = newLedgerId();
      for (const [order, id] of places) {
        await stores.records.put(write(kind, id, order));
        const rows = tokensAround(count).map((token) => [order, id, token] as const);
        await giveUp(kind, lookup, rows);
      }
      const find = async (page: FindPage) =>
        (await stores.records.find(kind, lookup, page)).map(({ id, order }) => ({ id, order }));
      for (const [name, descending] of directions) {
        const what = `${count}, ${name}`;
        const sorted = places.map(([order, id]) => ({ order, id }));
        if (descending) sorted.reverse();
        expect(await find({ limit: 100, descending }), what).toEqual(sorted);
        for (const [at, after] of sorted.entries()) {
          const [here, behind, furtherBehind] = [at, at + 1, at + 2].map((from) => sorted.slice(from, from + limit));
          expect(await find({ limit, offset: at, descending }), what).toEqual(here);
          expect(await find({ limit, after, descending }), what).toEqual(behind);
          expect(await find({ limit, offset: 1, after, descending }), what).toEqual(furtherBehind);
        }
      }
    };
    await Promise.all(Array.from({ length: limit + 13 }, (_, count) => findsAll(count)));
  });

  test.each(directions)('of records that were never written hide none in pages %s', async (_name, descending) => {
    const kind = newLedgerId();
    for (const [order, id] of places) await stores.records.put(write(kind, id, order));
    const never = Array.from({ length: 12 }, (_, at) =>
      ['0', '1', '2', '9'].map((order) => [order, `n${at}`, 't'] as const),
    );
    await giveUp(kind, lookup, never.flat());
    const sorted = places.map(([, id]) => id);
    if (descending) sorted.reverse();
    const byOffset = new Set<string>();
    for (let offset = 0; offset < sorted.length + never.flat().length; offset++)
      for (const { id } of await stores.records.find(kind, lookup, { limit: 1, offset, descending })) byOffset.add(id);
    expect([...byOffset]).toEqual(sorted);
    const paged: string[] = [];
    for (let after: FindPage['after']; ; ) {
      const [found] = await stores.records.find(kind, lookup, { limit: 1, descending, ...(after ? { after } : {}) });
      if (found === undefined) break;
      paged.push(found.id);
      after = found;
    }
    expect(paged).toEqual(sorted);
  });

  test('in front of a waiting delivery do not close its slot', async () => {
    const rig = deliveriesAt(undefined, stores.records);
    const nowMs = rig.clock.now();
    const [waiting] = await rig.recordNow(1);
    const slot = { name: 'pending', value: `${subscriptionId}|${slotOf(new Date(nowMs).toISOString())}` };
    const [live] = await rowsOf(blockKind, slot);
    if (live === undefined) expect.unreachable();
    const nine = Array.from({ length: 9 }, (_, at) => [live.line_order, `!${at}`, 't'] as const);
    await giveUp(blockKind, slot, [...nine, [live.line_order, live.id, '!']]);
    rig.clock.jump(60 * minuteMs);
    const again = rig.restarted();
    for (const _ of [1, 2]) expect((await again.pending()).map(({ delivery }) => delivery.id)).toEqual([waiting]);
  });

  test('do not exist without failures, and then a look-up reads one page and each record once', async () => {
    const { faults, records } = await faultyNode();
    const kind = newLedgerId();
    for (const [order, id] of places) await stores.records.put(write(kind, id, order));
    const before = faults.sent.length;
    await records.find(kind, lookup, { limit: 10 });
    expect(faults.sent.length - before).toBe(1 + places.length);
    await records.find(kind, lookup, { limit: 10, offset: 2 });
    expect(faults.sent.length - before).toBe(1 + places.length + 2 + places.length - 2);
    expect(await rowsOf(kind, lookup)).toHaveLength(places.length);
  });

  test.each(['the conditional write', 'an index row'])(
    'are removed by the next write if %s was not sent',
    async (what) => {
      const { faults, records } = await faultyNode();
      const kind = newLedgerId();
      if (what === 'an index row') faults.failWrites('record_expiry', 1);
      else faults.failDecisions('unsent');
      const expiresAt = Date.now() + minuteMs;
      const refused = records.put({ ...write(kind, 'a', '1'), expiresAt });
      await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
      await expect.poll(() => rowsOf(kind, lookup)).toHaveLength(1);
      await records.put(write(kind, 'b', '2'));
      await expect.poll(async () => (await rowsOf(kind, lookup)).map(({ id }) => id)).toEqual(['b']);
      expect(await records.get(kind, 'a')).toBeNull();
    },
  );

  test('of a put that may have been written are kept', async () => {
    const { faults, records } = await faultyNode();
    const kind = newLedgerId();
    faults.failDecisions('late', 'lost', 'lost');
    await expect(records.put(write(kind, 'a', '1'))).rejects.toMatchObject({ code: 'outcome_unknown' });
    await records.put(write(kind, 'b', '2'));
    expect(await faults.arrive()).toEqual([true]);
    expect((await stores.records.find(kind, lookup, { limit: 9 })).map(({ id }) => id)).toEqual(['a', 'b']);
  });
});
