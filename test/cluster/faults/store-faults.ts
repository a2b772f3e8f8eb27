import { Redis } from 'ioredis';
import { afterMs } from '../../../cluster/local/ports.ts';
import { leaseTtlMs } from '../rig/cluster-under-test.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { appendDuring, ledgerOfEachOwner } from './appends-during.ts';
import { chosen, type Fault, type FaultContext, type FaultOutcome } from './fault.ts';
import { ownerOfSomething } from './owner.ts';
import { askWithoutStore } from './store-outage.ts';

const balancedMaxMs = 30_000;

/** Redis is gone for a random time, shorter or longer than a lease. */
export const stopRedis: Fault = (context) => {
  const goneMs = context.random.between(500, leaseTtlMs + 2_500);
  return chosen(context, (again) => stopRedisFor(again, goneMs));
};

/** Redis is gone until all leases have run out. */
export const stopRedisForLong: Fault = (context) => stopRedisFor(context, leaseTtlMs + 1_000);

/** Every node appends to ledgers of every owner, and no shard may move. Redis comes back empty. */
async function stopRedisFor(context: FaultContext, goneMs: number): Promise<FaultOutcome> {
  const { cluster } = context;
  const ledgers = await ledgerOfEachOwner(context);
  const before = await Promise.all(cluster.nodes.map(placementOf));
  const beganMs = performance.now();
  await cluster.redis.current.process.kill();
  const appends = await appendDuring(context, ledgers, goneMs);
  const goneForMs = Math.round(performance.now() - beganMs);
  const after = await Promise.all(cluster.nodes.map(placementOf));
  await cluster.restartRedis();
  await cluster.untilBalanced(balancedMaxMs);
  const violations = cluster.nodes.flatMap(({ id }, at) =>
    before[at] === after[at] ? [] : [`without Redis ${id} came from ${before[at]} to ${after[at]}`],
  );
  return { what: `Redis gone for ${goneForMs} ms`, duringMs: appends.map(({ tookMs }) => tookMs), violations };
}

/**
 * An owner is killed while Redis is gone: any other node claims its ledgers. The restarted node serves without Redis.
 */
export const killWithoutRedis: Fault = async (context) => {
  const { cluster, load, random } = context;
  const ledgers = await ledgerOfEachOwner(context);
  const { victim, hit } = await ownerOfSomething(context);
  await cluster.redis.current.process.kill();
  const killedMs = performance.now();
  await victim.kill();
  const others = cluster.nodes.filter((node) => node !== victim);
  const seenMs = performance.now() - killedMs;
  const recoveryMs = seenMs + ((await load.appendTo(random.pick(hit), others)) ?? Number.POSITIVE_INFINITY);
  await victim.start();
  const appends = await appendDuring(context, ledgers, leaseTtlMs + 1_000);
  const goneForMs = Math.round(performance.now() - killedMs);
  await cluster.restartRedis();
  await cluster.untilBalanced(balancedMaxMs);
  const what = `Redis gone for ${goneForMs} ms, and ${victim.id} killed meanwhile`;
  return { what, recoveryMs, duringMs: appends.map(({ tookMs }) => tookMs) };
};

/** Returns a node's metrics of shards and moves. */
async function placementOf(node: NodeUnderTest): Promise<string> {
  const series = (await node.metrics()).match(/^svc_(?:shards|shard_moves_total)\{.*$/gm) ?? [];
  if (series.length === 0) throw new Error(`${node.id} does not tell of its shards`);
  return series.join(', ');
}

/** Redis forgets all leases and members at once. */
export const flushRedis: Fault = async ({ cluster }) => {
  const redis = new Redis(cluster.redis.current.url, { lazyConnect: true });
  await redis.connect();
  await redis.flushall();
  redis.disconnect();
  await cluster.untilBalanced(balancedMaxMs);
  return { what: 'Redis flushed' };
};

/** A node of Cassandra hangs. One time in four it hangs until all nodes have noticed. */
export const pauseCassandra: Fault = (context) => {
  const isLong = context.cluster.cassandra?.nodes.length === 1 && context.random.chance(0.25);
  return chosen(context, isLong ? pauseCassandraForLong : pauseCassandraBriefly);
};

/** The only Cassandra hangs until every node answers 503. */
export const pauseCassandraForLong: Fault = async (context) => {
  const [node] = context.cluster.cassandra?.nodes ?? [];
  if (node === undefined) throw new Error('the cluster has no Cassandra of its own');
  const beganMs = performance.now();
  const outage = await context.load.history.withoutStore(() => {
    node.process.pause();
    return askWithoutStore(context).finally(() => node.process.resume());
  });
  const pausedMs = Math.round(performance.now() - beganMs);
  const recoveryMs = await firstAppendAfter(context);
  return { what: `Cassandra ${node.address} paused for ${pausedMs} ms`, recoveryMs, ...outage };
};

/** Cassandra hangs so briefly that most calls are still answered. */
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

/** kill -9 of a node of Cassandra, which is restarted with its data. */
export const killCassandra: Fault = async (context) => {
  const { cluster, load, random } = context;
  const nodes = cluster.cassandra?.nodes ?? [];
  const index = random.between(0, nodes.length - 1);
  const killAndRestart = async (whileGone: () => Promise<Partial<FaultOutcome>>) => {
    await nodes[index]?.process.kill();
    const found = await whileGone();
    await cluster.cassandra?.restart(index);
    return found;
  };
  // The other two of three nodes are a quorum.
  const outage =
    nodes.length === 1
      ? await load.history.withoutStore(() => killAndRestart(() => askWithoutStore(context)))
      : await killAndRestart(async () => ({}));
  const recoveryMs = await firstAppendAfter(context);
  return { what: `Cassandra ${nodes[index]?.address} killed and started again`, recoveryMs, ...outage };
};

async function firstAppendAfter({ cluster, load, world, random }: FaultContext): Promise<number> {
  return (await load.appendTo(random.pick(world.ledgers), cluster.nodes)) ?? Number.POSITIVE_INFINITY;
}
