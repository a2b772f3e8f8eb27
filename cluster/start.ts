import { randomBytes } from 'node:crypto';
import { batchLimits } from '../src/actors/bounds.ts';
import { readSharedNodeKeys } from '../src/node/node-keys.ts';
import type { RunningNode } from '../src/node/node-parts.ts';
import { startNodeOver } from '../src/node/start-node.ts';
import { goodClock } from '../src/runtime/clock/plausible-clock.ts';
import { systemClock } from '../src/runtime/clock/system-clock.ts';
import { MemoryBudget } from '../src/runtime/limits/memory-budget.ts';
import type { NodeLog } from '../src/runtime/telemetry/log.ts';
import { openCassandra } from '../src/store/cassandra/open.ts';
import { ClockCheck } from './clock-check.ts';
import { advertisedAddress, type ClusterConfig, ownBackendPorts } from './config.ts';
import { clusterMembership } from './membership.ts';
import { BadValues } from './redis/bad-values.ts';
import { connectRedis, createRedis } from './redis/client.ts';
import { redisLeases } from './redis/redis-leases.ts';
import { redisMembers } from './redis/redis-members.ts';
import { redisNews } from './redis/redis-news.ts';

/**
 * How far ahead the end of a revoked key is dated. No node uses a key's record for longer than a second after reading
 * it, and no clock is off the store's by more than half a second (docs/architecture.md).
 */
export const revocationLeadMs = 2_000;

/**
 * Starts a node of a cluster: stores in Cassandra, leases and members in Redis. A Redis that does not answer does not
 * prevent the start. Throws ConfigError or StartError.
 */
export async function startClusterNode(config: ClusterConfig, log: NodeLog): Promise<RunningNode> {
  const clock = goodClock(systemClock);
  const stores = await openCassandra({
    settings: config.cassandra,
    now: () => clock.now(),
    random: randomBytes,
    isServing: true,
  });
  const connection = () => createRedis(config.redisUrl, (error) => log.debug({ err: error }, 'Redis connection'));
  const redis = connection();
  const badValues = new BadValues((sentence) => log.warn({}, sentence));
  const newsFailed = (error: unknown) => log.warn({ err: error }, 'news of another node failed');
  const news = redisNews(redis, connection(), config.placement, badValues.met, newsFailed);
  const close = async () => {
    redis.disconnect();
    news.close();
    await stores[Symbol.asyncDispose]();
  };
  return startNodeOver(close, async () => {
    const shardCount = await stores.shardCount();
    if (!(await connectRedis(redis))) log.warn({}, 'Redis does not answer; every node writes what it is asked to');
    const memory = new MemoryBudget(config.node.memoryBudgetBytes);
    const membership = clusterMembership({
      self: { id: config.nodeId, startedAt: new Date(systemClock.now()).toISOString() },
      shardCount,
      addressAt: (port) => advertisedAddress(config.advertise, port),
      server: redisLeases(redis, config.placement, badValues.met),
      board: redisMembers(redis, config.placement, badValues.met),
      news,
      security: config.peers,
      peerBounds: config.peerBounds,
      memory,
      timings: config.timings,
      stopDelayMs: config.stopDelayMs,
      clock: systemClock,
      now: () => clock.now(),
      monotonicMs: () => performance.now(),
      random: randomBytes,
      clockCheck: new ClockCheck(
        () => stores.time(),
        () => systemClock.now(),
        () => performance.now(),
      ),
      badRedisValues: badValues.counts,
      projectionLag: () => stores.projectionLag(),
      failed: (what, error) => log.warn({ err: error }, `${what} failed`),
      alarmed: (sentence) => log.error({}, sentence),
    });
    return {
      config: config.node,
      keys: readSharedNodeKeys(config.node),
      ...stores,
      storeChecks: [
        { name: 'cassandra', check: () => stores.check() },
        { name: 'redis', check: async () => void (await redis.ping()) },
      ],
      backendPorts: ownBackendPorts(config),
      self: config.nodeId,
      placement: membership.placement,
      peers: membership.peers,
      membership,
      revocationLeadMs,
      batchLimits: batchLimits.commitsApart,
      memory,
      clock,
      log,
      isStoreWritable: () => membership.hasStore(),
    };
  });
}
