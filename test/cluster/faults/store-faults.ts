import { Redis } from 'ioredis';
import { afterMs } from '../../../cluster/local/ports.ts';
import { leaseTtlMs } from '../rig/cluster-under-test.ts';
import type { Fault, FaultContext } from './fault.ts';
import { askWithoutStore } from './store-outage.ts';

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

/** A node of Cassandra hangs: what was sent to it may be carried out, late. One time of four it hangs until all nodes know. */
export const pauseCassandra: Fault = (context) =>
  context.cluster.cassandra?.nodes.length === 1 && context.random.chance(0.25)
    ? pauseCassandraForLong(context)
    : pauseCassandraBriefly(context);

/** The only Cassandra hangs until every node has been seen to answer without it. */
export const pauseCassandraForLong: Fault = async (context) => {
  const [node] = context.cluster.cassandra?.nodes ?? [];
  if (node === undefined) throw new Error('the cluster has no Cassandra of its own');
  const beganMs = performance.now();
  node.process.pause();
  const outage = await askWithoutStore(context).finally(() => node.process.resume());
  const pausedMs = Math.round(performance.now() - beganMs);
  const recoveryMs = await firstAppendAfter(context);
  return { what: `Cassandra ${node.address} paused for ${pausedMs} ms`, recoveryMs, ...outage };
};

/** So briefly that most calls find it awake again before they are given up. */
export const pauseCassandraBriefly: Fault = async (context) => {
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
  // Where it was one of three, those that are left are a quorum.
  const outage = nodes.length === 1 ? await askWithoutStore(context) : {};
  await cluster.cassandra?.restart(index);
  const recoveryMs = await firstAppendAfter(context);
  return { what: `Cassandra ${nodes[index]?.address} killed and started again`, recoveryMs, ...outage };
};

async function firstAppendAfter({ cluster, load, world, random }: FaultContext): Promise<number> {
  return (await load.appendTo(random.pick(world.ledgers), cluster.nodes)) ?? Number.POSITIVE_INFINITY;
}
