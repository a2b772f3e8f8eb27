import { randomBytes } from 'node:crypto';
import { afterMs } from '../../../cluster/local/ports.ts';
import { createRedis } from '../../../cluster/redis/client.ts';
import { redisLeases } from '../../../cluster/redis/redis-leases.ts';
import { redisMembers } from '../../../cluster/redis/redis-members.ts';
import { type ClusterUnderTest, leaseTtlMs, shardCount } from './cluster-under-test.ts';
import type { ClusterView } from './node-under-test.ts';

/** The default CLUSTER_NAME, which the clusters of tests have. */
export const placement = 'placement';
const knownMaxMs = 15_000;
const pollMs = 100;

/** Connects to the Redis of a cluster. */
export async function redisOf(cluster: ClusterUnderTest) {
  const redis = createRedis(cluster.redis.current.url, () => {});
  await redis.connect();
  return redis;
}

/**
 * Announces the node `node-x` in Redis at a port of the test, and takes the lease of one shard for it. The false node
 * is cordoned, so no other shard moves. Resolves when all nodes believe that it owns the shard.
 */
export async function announceFalseMember(
  cluster: ClusterUnderTest,
  port: number,
  shard: number,
): Promise<AsyncDisposable> {
  const redis = await redisOf(cluster);
  const [board, leases] = [redisMembers(redis, placement), redisLeases(redis, placement)];
  const run = { id: 'node-x', address: `127.0.0.1:${port}`, startedAt: new Date().toISOString() };
  const lease = { shard, token: randomBytes(16).toString('hex') };
  await board.order(run.id, 'cordoned');
  let stopped = false;
  const keep = async () => {
    await board.announce({ ...run, shardCount, draining: false }, leaseTtlMs);
    if ((await leases.renew([lease], leaseTtlMs)).has(shard)) return;
    await redis.del(`lease:{${placement}}:${shard}`);
    await leases.acquire(lease, run.id, leaseTtlMs);
  };
  const keeping = (async () => {
    while (!stopped) {
      await keep().catch(() => {});
      await afterMs(pollMs);
    }
  })();
  const isNone = (members: ClusterView['members']) => members.every(({ id }) => id !== run.id);
  const end = async () => {
    stopped = true;
    await keeping;
    await board.withdraw(run);
    await board.order(run.id, null);
    await leases.release(lease, null, 0);
    redis.disconnect();
    await cluster.untilBalanced(knownMaxMs);
    await untilAll(cluster, ({ members, owners }) => isNone(members) && owners[shard] !== run.id);
  };
  try {
    await untilAll(cluster, ({ members }) => !isNone(members));
    // Until the former owner knows that it has lost the shard.
    await untilAll(cluster, (_, views) => views.reduce((sum, { shards }) => sum + shards.held, 0) === shardCount - 1);
  } catch (error) {
    await end().catch(() => {});
    throw error;
  }
  return { [Symbol.asyncDispose]: end };
}

/** Waits until the view of every node satisfies `isSo`. */
async function untilAll(
  { nodes }: ClusterUnderTest,
  isSo: (view: ClusterView, all: readonly ClusterView[]) => boolean,
): Promise<void> {
  const began = performance.now();
  for (;;) {
    const views = await Promise.all(nodes.map((node) => node.view()));
    if (views.every((view) => isSo(view, views))) return;
    if (performance.now() - began > knownMaxMs) throw new Error(`still ${JSON.stringify(views)}`);
    await afterMs(pollMs);
  }
}
