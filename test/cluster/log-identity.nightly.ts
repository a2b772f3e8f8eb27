import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepClusterLog, moveClusterLog, rotateClusterLog } from '../../cluster/cli/log-commands.ts';
import { openRedisView } from '../../cluster/cli/redis-view.ts';
import { openCassandra } from '../../src/store/cassandra/open.ts';
import { keyspaceIdFact } from '../../src/store/cassandra/schema/fact-values.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { newOrder } from '../support/parties.ts';
import { done, rest } from '../support/parties-rest.ts';
import { newKeyFile } from '../support/production-settings.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';
import { layOutNode, type NodeUnderTest } from './rig/node-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

const origin = 'ledger.example/v1';

await describeOnCassandra('the log of a cluster', (address) => {
  let cluster: ClusterUnderTest;
  beforeAll(async () => {
    cluster = await startCluster({ nodes: 3, cassandra: address, env: { LOG_ORIGIN: origin } });
  }, 60_000);
  afterAll(() => cluster?.[Symbol.asyncDispose](), 30_000);

  const logOf = async ({ baseUrl }: NodeUnderTest) =>
    (await done(baseUrl, 'GET', '/.well-known/svc-authority')).body.log;
  const healthOf = async ({ baseUrl }: NodeUnderTest) => (await done(baseUrl, 'GET', '/health')).body;
  const refusesToStart = async (node: NodeUnderTest, why: RegExp) => {
    await expect(node.start()).rejects.toThrow(/has ended/);
    expect(readFileSync(node.logFile, 'utf8')).toMatch(why);
  };
  /**
   * As a snapshot looks that was imported into a keyspace of its own: its facts are older than those of the keyspace.
   */
  const restore = async () => {
    await using stores = await openCassandra({ settings: cluster.settings, now: Date.now, random: randomBytes });
    const before = (await stores.facts.get(keyspaceIdFact)) ?? '';
    expect(before).toMatch(/^[0-9a-f]{32}$/);
    await stores.facts.move(keyspaceIdFact, before, randomBytes(16).toString('hex'));
  };

  test('nodes that start together agree, a restored copy is silent, and the commands need all nodes stopped', async () => {
    const logs = await Promise.all(cluster.nodes.map(logOf));
    expect(logs[0]).toMatchObject({ origin, keys: [{ valid_to: null }], previous: [] });
    for (const log of logs) expect(log).toEqual(logs[0]);
    await using view = await openRedisView(cluster.commonEnv);
    const { board } = view;
    const next = newKeyFile(cluster.dir, 'next-log.pem');
    for (const run of [
      () => rotateClusterLog(cluster.commonEnv, next, board),
      () => keepClusterLog(cluster.commonEnv, board),
      () => moveClusterLog(cluster.commonEnv, `${origin}-2`, undefined, board),
    ])
      await expect(run()).rejects.toThrow('Stop all nodes first');
    await Promise.all(cluster.nodes.map((node) => node.terminate()));

    await restore();
    const node = cluster.nodeAt(0);
    await node.start();
    expect(await healthOf(node)).toMatchObject({
      status: 'degraded',
      db: expect.arrayContaining([{ name: 'log', status: 'behind' }]),
    });
    await withRetries(() => newOrder(node.baseUrl));
    await node.terminate();

    expect(await keepClusterLog(cluster.commonEnv, board)).toContain('counts as the original');
    await node.start();
    expect(await healthOf(node)).toMatchObject({ status: 'ok' });
    await node.terminate();

    // It runs under another CLUSTER_NAME, so that the command does not see it.
    await using forgotten = await layOutNode({
      ...{ id: 'forgotten', dir: cluster.dir, redisPort: Number(new URL(cluster.commonEnv.REDIS_URL ?? '').port) },
      env: { ...cluster.commonEnv, CLUSTER_NAME: 'forgotten' },
    });
    await forgotten.start();
    const order = await withRetries(() => newOrder(forgotten.baseUrl));
    const checkpoint = () => rest(forgotten.baseUrl, 'GET', `/v1/ledgers/${order.ledgerId}/checkpoint`, order.buyer);
    expect((await checkpoint()).status).toBe(200);

    const told = await rotateClusterLog(cluster.commonEnv, next, board);
    expect(told).toMatch(/^The key with the fingerprint [0-9a-f]{64} signs the logs of .* LOG_KEY_FILE=.* from 10 s/);
    await expect
      .poll(async () => (await checkpoint()).body, { timeout: 15_000 })
      .toMatchObject({ error: { code: 'unavailable', details: { reason: 'log_behind' } } });
    expect(await healthOf(forgotten)).toMatchObject({
      db: expect.arrayContaining([{ name: 'log', status: 'behind' }]),
    });
    // The node writes its log a moment later.
    await expect
      .poll(() => readFileSync(forgotten.logFile, 'utf8'))
      .toContain('so this node signs no checkpoint any more: stop it');
    await withRetries(() => newOrder(forgotten.baseUrl));
    await forgotten.terminate();
    expect(await rotateClusterLog(cluster.commonEnv, next, board)).toBe(told);
    await refusesToStart(node, /LOG_KEY_FILE holds another key .*\n$/);
    await moveClusterLog(cluster.commonEnv, `${origin}-2`, undefined, board);
    await refusesToStart(node, /LOG_ORIGIN is .*\n$/);
    await expect(moveClusterLog(cluster.commonEnv, origin, undefined, board)).rejects.toThrow(/was never used/);
  }, 180_000);
});
