import type cassandra from 'cassandra-driver';
import { beforeAll, expect, test } from 'vitest';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import type { Statement } from '../../src/store/cassandra/session/session.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { type DeliveryRig, delivered, deliveriesAt, minuteMs } from '../support/webhook-deliveries.ts';
import { suiteKeyspace, withClient } from './cassandra-factory.ts';

/** Each block leaves deleted rows when it is done. */
const blocksOfSlot = 8;
const slots = 6;
/** The present slot, and those before it that are not closed yet. */
const slotsOpen = 3;

await describeOnCassandra('Deleted rows on Cassandra', (address) => {
  const { settings, open } = suiteKeyspace(address);
  let stores: CassandraStores;
  let seen: Statement[] = [];
  let beforeRead: (statement: Statement) => Promise<void> = async () => {};
  beforeAll(async () => {
    stores = await open((session) => ({
      ...session,
      read: async (statement, options) => {
        seen.push(statement);
        await beforeRead(statement);
        return session.read(statement, options);
      },
    }));
  });

  /** The live and deleted rows that Cassandra's traces count for a read of due deliveries. */
  async function readByRefill(rig: DeliveryRig) {
    seen = [];
    const due = await rig.pending();
    const statements = seen;
    return withClient(settings, async (client) => {
      const read = { live: 0, deleted: 0 };
      for (const statement of statements) {
        const { live, deleted } = await traced(client, statement);
        read.live += live;
        read.deleted += deleted;
      }
      return { due: due.length, statements: statements.length, ...read };
    });
  }

  test('reads of due deliveries do not grow with finished ones', { timeout: 120_000 }, async () => {
    const rig = deliveriesAt(undefined, stores.records);
    const reads: Awaited<ReturnType<typeof readByRefill>>[] = [];
    for (let slot = 0; slot < slots; slot++) {
      for (let block = 0; block < blocksOfSlot; block++) await rig.recordNow(1);
      await rig.sendAll(delivered);
      await rig.recordNow(1);
      if (slot === slotsOpen - 1 || slot === slots - 1) reads.push(await readByRefill(rig));
      await rig.sendAll(delivered);
      rig.clock.jump(10 * minuteMs);
    }
    const [early, late] = reads;
    if (early === undefined || late === undefined) expect.unreachable();
    expect([early.due, late.due]).toEqual([1, 1]);
    expect(early.deleted).toBeGreaterThanOrEqual(slotsOpen * blocksOfSlot);
    // Each slot that was closed has left a row itself.
    expect(late.deleted).toBeLessThanOrEqual(early.deleted + slots - slotsOpen);
    expect(late.live).toBe(early.live);
    expect(late.statements).toBe(early.statements);
  });

  test('a minute with removed records is left alone for an hour and then read once more', async () => {
    const hourMs = 60 * minuteMs;
    const startMs = Date.UTC(2026, 10, 22, 12);
    const put = (id: string, expiresAt: number) =>
      stores.records.put({ kind: 'k', id, replaces: 'absent', value: '{}', lookups: [], expiresAt });
    const looksInto = async (nowMs: number) => {
      seen = [];
      await stores.records.sweep(nowMs, 1_000);
      const minute = BigInt(startMs / minuteMs);
      return seen.filter(({ cql, params }) => cql.includes('FROM record_expiry ') && params[0] === minute).length;
    };
    await Promise.all(Array.from({ length: 20 }, (_, at) => put(`${at}`, startMs + at)));
    const afterMs = startMs + 2 * minuteMs;
    expect([await looksInto(afterMs), await looksInto(afterMs), await looksInto(afterMs)]).toEqual([1, 1, 0]);
    await put('late', startMs + 5);
    expect(await looksInto(afterMs + hourMs / 2)).toBe(0);
    expect(await looksInto(afterMs + hourMs)).toBe(1);
    expect(await stores.records.get('k', 'late')).toBeNull();
    expect(await looksInto(afterMs + hourMs)).toBe(1);
    expect(await looksInto(afterMs + hourMs)).toBe(0);
  });

  test('a minute is swept in parts without reading a row twice', async () => {
    const [rows, atOnce, startMs] = [24, 4, Date.UTC(2026, 10, 23, 12)];
    for (let at = 0; at < rows; at++)
      await stores.records.put({
        kind: 'k',
        id: `s${at}`,
        replaces: 'absent',
        value: '{}',
        lookups: [],
        expiresAt: startMs + at,
      });
    await withClient(settings, async (client) => {
      const read = { live: 0, deleted: 0 };
      beforeRead = async (statement) => {
        if (!statement.cql.includes('FROM record_expiry ') || statement.params[0] !== BigInt(startMs / minuteMs))
          return;
        const { live, deleted } = await traced(client, statement);
        read.live += live;
        read.deleted += deleted;
      };
      const sweep = () => stores.records.sweep(startMs + minuteMs, atOnce);
      const removed: number[] = [];
      for (let isDone = false; !isDone; ) {
        const swept = await sweep();
        removed.push(swept.removed);
        isDone = swept.oldestLeft === null;
      }
      expect(removed).toEqual([4, 4, 4, 4, 4, 4, 0]);
      // At its end the minute is read once more from its beginning. Then it is known to be empty.
      expect(read).toEqual({ live: rows, deleted: rows });
      expect(await sweep()).toEqual({ removed: 0, oldestLeft: null });
      expect(read).toEqual({ live: rows, deleted: rows });
    });
    beforeRead = async () => {};
  });
});

async function traced(
  client: cassandra.Client,
  { cql, params }: Statement,
): Promise<{ live: number; deleted: number }> {
  const plain = params.map((param) => (typeof param === 'bigint' ? String(param) : param));
  const { info } = await client.execute(cql, plain, { prepare: true, traceQuery: true });
  const counts = { live: 0, deleted: 0 };
  if (info.traceId === undefined) throw new Error('Cassandra has traced nothing');
  // A trace is written while the answer is on its way.
  for (let tries = 0; tries < 100; tries++) {
    const trace = await new Promise<{ duration: number; events: { activity: string }[] }>((resolve, reject) =>
      client.metadata.getTrace(info.traceId as cassandra.types.Uuid, (error, found) =>
        error === null || error === undefined ? resolve(found as never) : reject(error),
      ),
    );
    const found = trace.events.flatMap(({ activity }) => [
      ...activity.matchAll(/^Read (\d+) live rows(?:, \d+ range tombstones,?)? and (\d+) tombstone/g),
    ]);
    if (found.length === 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      continue;
    }
    for (const [, live, deleted] of found) {
      counts.live += Number(live);
      counts.deleted += Number(deleted);
    }
    return counts;
  }
  throw new Error(`No trace tells what was read by ${cql}`);
}
