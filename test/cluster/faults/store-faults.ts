import { Redis } from 'ioredis';
import { afterMs } from '../../../cluster/local/ports.ts';
import { leaseTtlMs } from '../rig/cluster-under-test.ts';
import type { Fault, FaultContext } from './fault.ts';

const balancedMaxMs = 30_000;

/** Redis is gone, for longer than a lease or shorter, and comes back with nothing in it. */
export const stopRedis: Fault = async ({ cluster, random }) => {
  const goneMs = random.between(500, leaseTtlMs + 2_500);
  await cluster.redis.current.process.kill();
  await afterMs(goneMs);
  await cluster.restartRedis();
  await cluster.untilBalanced(balancedMaxMs);
  return { what: `Redis gone for ${goneMs} ms` };
};

/** Redis forgets all leases and members at once. */
export const flushRedis: Fault = async ({ cluster }) => {
  const redis = new Redis(cluster.redis.current.url, { lazyConnect: true });
  await redis.connect();
  await redis.flushall();
  redis.disconnect();
  await cluster.untilBalanced(balancedMaxMs);
  return { what: 'Redis flushed' };
};

/** A node of Cassandra hangs: what was sent to it may be carried out, late. */
export const pauseCassandra: Fault = async (context) => {
  const { cluster, random } = context;
  const nodes = cluster.cassandra?.nodes ?? [];
  const node = random.pick(nodes);
  const pausedMs = random.between(1_000, 5_000);
  node.process.pause();
  await afterMs(pausedMs);
  node.process.resume();
  const recoveryMs = await firstAppendAfter(context);
  return { what: `Cassandra ${node.address} paused for ${pausedMs} ms`, recoveryMs };
};

/** kill -9 of a node of Cassandra, and started again with what it has on disk. */
export const killCassandra: Fault = async (context) => {
  const { cluster, random } = context;
  const nodes = cluster.cassandra?.nodes ?? [];
  const index = random.between(0, nodes.length - 1);
  await nodes[index]?.process.kill();
  await cluster.cassandra?.restart(index);
  const recoveryMs = await firstAppendAfter(context);
  return { what: `Cassandra ${nodes[index]?.address} killed and started again`, recoveryMs };
};

async function firstAppendAfter({ cluster, load, world, random }: FaultContext): Promise<number> {
  return (await load.appendTo(random.pick(world.ledgers), cluster.nodes)) ?? Number.POSITIVE_INFINITY;
}
