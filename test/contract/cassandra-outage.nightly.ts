import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LocalCassandra, startCassandra } from '../../cluster/local/cassandra.ts';
import { cassandraClasspath } from '../../cluster/local/cassandra-jars.ts';
import { LedgerError } from '../../src/domain/errors.ts';
import type { CassandraStores } from '../../src/store/cassandra/open.ts';
import { OutcomeUnknown } from '../../src/store/ledger-store.ts';
import { describeOn } from '../support/backends/for-tests.ts';
import { watchHost } from '../support/host-watch.ts';
import { entriesAfter, entriesFor, headOf, newLedgerId } from '../support/store-entries.ts';
import { makeKeyspace, newKeyspace, openStores } from './cassandra-factory.ts';

/**
 * As long as a call may take while Cassandra hangs: two attempts, each with its deadline, and some for a busy machine.
 */
const callMaxMs = 12_000;
const settleMaxMs = 30_000;

const jars = await cassandraClasspath().then(
  (classpath) => ({ kind: 'there', address: classpath, startupMs: 0, from: 'Maven' }) as const,
  (error: unknown) => ({ kind: 'missing', reason: String(error) }) as const,
);

/** Of a Cassandra of its own, since everybody else would notice. */
describeOn('Cassandra that stops', 'jars of Cassandra', jars, () => {
  let dir = '';
  let cluster: LocalCassandra;
  let stores: CassandraStores;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'lts-outage-'));
    cluster = await startCassandra({ nodes: 1, dir, heapMb: 512 });
    const { contactPoints, localDataCenter } = cluster;
    const settings = newKeyspace({ contactPoints, localDataCenter, allow: [] });
    await makeKeyspace(settings);
    stores = await openStores(settings, Date.now);
  }, 120_000);
  afterAll(async () => {
    await stores[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
    await rm(dir, { recursive: true, force: true });
  });

  /** How long a call takes, and what it says. */
  async function timed(call: () => Promise<unknown>) {
    const began = performance.now();
    const outcome = await call().then(
      () => 'done',
      (error: unknown) => (error instanceof LedgerError ? error.code : error instanceof Error ? error.name : 'other'),
    );
    return { outcome, ms: performance.now() - began };
  }
  /**
   * What a call answers once the store says that it is back. Refused as `unavailable` it wrote nothing and is made
   * again, as callers do: behind the first answer the driver may yet drop a connection on which a slow start left
   * others without one.
   */
  async function onceBack<T>(call: () => Promise<T>): Promise<T> {
    await expect.poll(() => stores.check().then(() => true), { timeout: settleMaxMs, interval: 100 }).toBe(true);
    const began = performance.now();
    for (;;)
      try {
        return await call();
      } catch (error) {
        const isRefused = error instanceof LedgerError && error.code === 'unavailable';
        if (!isRefused || performance.now() - began > settleMaxMs) throw error;
      }
  }
  const node = () => {
    const [first] = cluster.nodes;
    if (first === undefined) throw new Error('There is no node');
    return first.process;
  };

  describe.each([
    ['paused and continued', () => node().pause(), async () => node().resume()],
    ['killed and started again', () => node().kill(), () => cluster.restart(0)],
  ] as const)('%s', (_name, stop, start) => {
    test('calls fail in time, then at once, memory stays bounded, and all works again without a restart', async () => {
      const { ledgers, records } = stores;
      const claim = await ledgers.claim(newLedgerId());
      const entries = entriesFor(claim, 2);
      await ledgers.append(claim, entries);
      const host = watchHost();
      await stop();

      const first = await Promise.all([
        timed(() => ledgers.append(claim, entriesAfter(headOf(entries), 1, { salt: 'in doubt' }))),
        timed(() => ledgers.read(claim.ledgerId, 0, 9)),
        timed(() => ledgers.claim(newLedgerId())),
        timed(() => records.put({ kind: 'k', id: newLedgerId(), replaces: 'absent', value: '1', lookups: [] })),
      ]);
      expect(['OutcomeUnknown', 'unavailable']).toContain(first[0]?.outcome);
      for (const { outcome } of first.slice(1)) expect(outcome).toBe('unavailable');
      for (const { ms } of first) expect(ms).toBeLessThan(host.bound(callMaxMs));

      // Once it is noticed, the answer is quick, and who tries again at once does not keep the process busy.
      const isQuick = async () => (await timed(() => ledgers.head(newLedgerId()))).ms < 1_000;
      await expect.poll(isQuick, { timeout: callMaxMs, interval: 10 }).toBe(true);
      const heapBefore = process.memoryUsage().heapUsed;
      const usageBefore = process.cpuUsage();
      const until = performance.now() + 3_000;
      let calls = 0;
      const quick: number[] = [];
      await Promise.all(
        Array.from({ length: 200 }, async () => {
          while (performance.now() < until) {
            const { outcome, ms } = await timed(() => ledgers.head(newLedgerId()));
            expect(outcome).toBe('unavailable');
            quick.push(ms);
            calls++;
          }
        }),
      );
      quick.sort((a, b) => a - b);
      expect(quick[Math.floor(quick.length / 2)]).toBeLessThan(host.bound(1_000));
      expect(calls).toBeLessThan(200 * 40);
      const { user, system } = process.cpuUsage(usageBefore);
      expect((user + system) / 1000).toBeLessThan(host.bound(2_500));
      expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(100 * 1024 * 1024);

      await start();
      const newer = await onceBack(() => ledgers.claim(claim.ledgerId));
      // The append in doubt is there or not, and stays so.
      expect([1, 2]).toContain(newer.head?.seq);
      const more = entriesAfter(newer.head, 1);
      await ledgers.append(newer, more);
      expect(await ledgers.head(claim.ledgerId)).toEqual(headOf(more));
      expect((await ledgers.read(claim.ledgerId, 0, 2)).map(({ row }) => row)).toEqual(entries.map(({ row }) => row));
    }, 120_000);
  });

  test('a kill during appends loses no answered event', async () => {
    const { ledgers } = stores;
    const answered = new Map<string, number>();
    let stopped = false;
    const ids = Array.from({ length: 8 }, newLedgerId);
    const writers = ids.map(async (ledgerId) => {
      const claim = await ledgers.claim(ledgerId);
      for (let head = claim.head; !stopped; ) {
        const entries = entriesAfter(head, 3);
        try {
          await ledgers.append(claim, entries);
        } catch (error) {
          expect(error instanceof OutcomeUnknown || error instanceof LedgerError).toBe(true);
          return;
        }
        head = headOf(entries);
        answered.set(ledgerId, head.seq);
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await node().kill();
    stopped = true;
    await Promise.all(writers);
    await cluster.restart(0);
    expect(answered.size).toBe(8);
    for (const [ledgerId, seq] of answered) {
      const head = await onceBack(() => ledgers.head(ledgerId));
      expect(head?.seq).toBeGreaterThanOrEqual(seq);
      expect(head?.seq).toBeLessThanOrEqual(seq + 3);
      expect((await ledgers.read(ledgerId, 0, 100_000)).length).toBe((head?.seq ?? -1) + 1);
    }
  }, 120_000);
});
