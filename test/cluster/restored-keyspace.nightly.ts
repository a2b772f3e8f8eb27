import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { keepClusterLog, moveClusterLog } from '../../cluster/cli/log-commands.ts';
import { openRedisView } from '../../cluster/cli/redis-view.ts';
import { applySchema } from '../../src/store/cassandra/schema/apply-schema.ts';
import { withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { expectUnavailable, type ProvenWorld, proofReader } from '../support/proof-reader.ts';
import { type ClusterUnderTest, shardCount, startCluster } from './rig/cluster-under-test.ts';
import { importSnapshot, type KeyspaceSnapshot, takeSnapshot } from './rig/keyspace-snapshot.ts';
import { layOutNode, type NodeUnderTest } from './rig/node-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

const origin = 'ledger.example/v1';

await describeOnCassandra('a keyspace that was restored', (address) => {
  test('signs nothing of what lacks events that were signed', { timeout: 600_000 }, async () => {
    await using cluster = await startCluster({ nodes: 3, cassandra: address, env: { LOG_ORIGIN: origin } });
    const { settings } = cluster;
    const stop = () => Promise.all(cluster.nodes.map((node) => node.terminate()));
    const start = () => Promise.all(cluster.nodes.map((node) => node.start()));
    const worlds = [await newWorld(cluster.nodeAt(0)), await newWorld(cluster.nodeAt(1))] as const;
    const [shortened, other] = worlds;
    for (const world of worlds) await signAll(cluster.nodeAt(2), world);
    await stop();
    const snapshot = await takeSnapshot(settings);
    await start();
    for (const world of worlds) await appendSome(cluster.nodeAt(0), world);
    for (const world of worlds) await signAll(cluster.nodeAt(1), world);
    const kept = await readerAt(cluster.nodeAt(2), other).checkpoint('ledger');
    await stop();

    await restoreEventsOf(cluster, snapshot, shortened.order.ledgerId);
    await start();
    for (const node of cluster.nodes) {
      expectUnavailable(await readerAt(node, shortened).refusals(), 'log_behind');
      expect(await readerAt(node, other).agreesWith(kept)).toBe(true);
      expect(await readerAt(node, other).checkpoint('master')).toMatchObject({ size: 11 });
      expect(await countsOf(node)).toEqual({ store: 0, ledger: 1, master: 1 });
      expect(await logIn(node)).toEqual([{ name: 'log', status: 'behind' }]);
    }
    await appendSome(cluster.nodeAt(0), other);
    await stop();

    await withClient({ ...settings, keyspace: 'system' }, (client) =>
      client.execute(`DROP KEYSPACE ${settings.keyspace}`, [], { readTimeout: 60_000 }),
    );
    const replication = new Map([[settings.localDataCenter, 1]]);
    await applySchema(settings, { replication, shardCount, random: (bytes) => randomBytes(bytes) });
    await importSnapshot(settings, snapshot);
    await start();
    for (const node of cluster.nodes) {
      for (const world of worlds) {
        expectUnavailable(await readerAt(node, world).refusals(), 'log_behind');
        await appendSome(node, world, 1);
      }
      expect(await countsOf(node)).toEqual({ store: 1, ledger: 0, master: 0 });
      expect(await node.metrics()).not.toMatch(/^svc_checkpoints_signed_total\{.*\} [1-9]/m);
      expect(await logIn(node)).toEqual([{ name: 'log', status: 'behind' }]);
    }
    await stop();

    await using view = await openRedisView(cluster.commonEnv);
    await expect(moveClusterLog(cluster.commonEnv, origin, undefined, view.board)).rejects.toThrow(/was never used/);
    const moved = `${origin}-2026-11-26`;
    await moveClusterLog(cluster.commonEnv, moved, undefined, view.board);
    expect(await keepClusterLog(cluster.commonEnv, view.board)).toContain('not marked as a copy');
    const redisPort = Number(new URL(cluster.commonEnv.REDIS_URL ?? '').port);
    const env = { ...cluster.commonEnv, LOG_ORIGIN: moved };
    await using node = await layOutNode({ id: 'moved', dir: cluster.dir, redisPort, env });
    await node.start();
    for (const world of worlds) {
      const reader = proofReader({ base: node.baseUrl }, world, moved);
      expect(await reader.agreesWith(await reader.checkpoint('ledger', 4))).toBe(true);
      expect((await reader.checkpoint('master')).size).toBe(9);
    }
    expect(await logIn(node)).toEqual([]);
  });
});

async function newWorld(node: NodeUnderTest): Promise<ProvenWorld> {
  const order = await withRetries(() => newOrder(node.baseUrl, { keyed: false }));
  const world = { order, master: await withRetries(() => newMaster(order)) };
  await appendSome(node, world);
  return world;
}

async function appendSome(node: NodeUnderTest, { order, master }: ProvenWorld, count = 5): Promise<void> {
  for (let n = 0; n < count; n += 1)
    await withRetries(async () => {
      const answer = await append({ ...master, base: node.baseUrl }, order.buyer, 'NOTED', { n });
      expect([answer.status, answer.raw]).toEqual([200, expect.any(String)]);
    });
}

const readerAt = (node: NodeUnderTest, world: ProvenWorld) => proofReader({ base: node.baseUrl }, world, origin);

async function signAll(node: NodeUnderTest, world: ProvenWorld): Promise<void> {
  for (const kind of ['ledger', 'master'] as const) await withRetries(() => readerAt(node, world).checkpoint(kind));
}

/** What `/health` says of the log. */
async function logIn({ baseUrl }: NodeUnderTest): Promise<unknown[]> {
  return (await done(baseUrl, 'GET', '/health')).rows('db').filter(({ name }) => name === 'log');
}

async function countsOf(node: NodeUnderTest) {
  const count = (kind: string) => node.counted(`svc_log_behind{kind="${kind}"}`);
  return { store: await count('store'), ledger: await count('ledger'), master: await count('master') };
}

/** Puts the events of one ledger back to what the snapshot has, and nothing else. */
async function restoreEventsOf({ settings }: ClusterUnderTest, snapshot: KeyspaceSnapshot, ledgerId: string) {
  await withClient(settings, (client) =>
    client.execute('DELETE FROM ledger_event WHERE ledger_id = ? AND bucket = 0', [ledgerId], { prepare: true }),
  );
  const isOfLedger = ({ table, values }: KeyspaceSnapshot[number]) =>
    table === 'ledger_event' && values.get('ledger_id') === JSON.stringify(ledgerId);
  await importSnapshot(settings, snapshot.filter(isOfLedger), (Date.now() + 1) * 1_000);
}
