import { afterMs } from '../../../cluster/local/ports.ts';
import type { Load } from '../load/load.ts';
import { leaseTtlMs } from '../rig/cluster-under-test.ts';
import type { NodeUnderTest, Stopped } from '../rig/node-under-test.ts';
import type { Fault, FaultContext } from './fault.ts';

const probes = 3;
/** A rolling restart or a change of size has to be over by then, a node. */
const balancedMaxMs = 60_000;
const stopMaxMs = 20_000;

/** kill -9 of the owner of some ledgers that are written to. Their recovery is that of the slowest of them. */
export const killNode: Fault = async (context) => {
  const { cluster, load, random } = context;
  const victim = await ownerOfSomething(context);
  const owners = await cluster.owners();
  const hit = await ledgersOf(context, victim, owners);
  const others = cluster.nodes.filter((node) => node !== victim);
  await victim.kill();
  const recoveries = hit.slice(0, probes).map((ledger) => load.appendTo(ledger, others));
  await afterMs(random.between(0, 2_000));
  await victim.start();
  const took = await Promise.all(recoveries);
  const recoveryMs = Math.max(...took.map((ms) => ms ?? Number.POSITIVE_INFINITY));
  return { what: `${victim.id} killed, owner of ${hit.length} ledgers`, recoveryMs };
};

/** SIGSTOP for longer than its leases last; when it wakes up it still takes itself for the owner. */
export const pauseNode: Fault = async (context) => {
  const { random } = context;
  const victim = await ownerOfSomething(context);
  const pausedMs = leaseTtlMs + random.between(500, 2_500);
  victim.pause();
  await afterMs(pausedMs);
  victim.resume();
  await victim.untilReady();
  await afterMs(500);
  return { what: `${victim.id} paused for ${pausedMs} ms` };
};

/** Other nodes, or all of them, or Redis, cannot be reached from somewhere: refused at once, or in silence. */
export const cutOff: Fault = async ({ cluster, random }) => {
  const mode = random.pick(['refused', 'silent'] as const);
  const which = random.pick([
    'one from its peers',
    'all from each other',
    'one from Redis',
    'one from everything',
  ] as const);
  const node = random.pick(cluster.nodes);
  const cuts = {
    'one from its peers': [node.fromPeers],
    'all from each other': cluster.nodes.map(({ fromPeers }) => fromPeers),
    'one from Redis': [node.toRedis],
    'one from everything': [node.toRedis, node.fromPeers],
  }[which];
  for (const cut of cuts) cut.set(mode);
  const lastsMs = random.between(1_500, leaseTtlMs + 2_000);
  await afterMs(lastsMs);
  for (const cut of cuts) cut.set('open');
  await afterMs(1_000);
  return { what: `${which}, ${mode}, ${node.id}, ${lastsMs} ms` };
};

/** Each node in turn: SIGTERM, until it has ended as it should, and started again. No call may fail. */
export const rollingRestart: Fault = async ({ cluster, load }) => {
  const failures = countFailures(load);
  const acknowledgedBefore = load.history.acknowledgements.length;
  const stops: Stopped[] = [];
  for (const node of [...cluster.nodes]) {
    stops.push(await node.terminate());
    await node.start();
  }
  await cluster.untilBalanced(balancedMaxMs);
  const failed = await failures();
  const slowestMs = Math.max(0, ...load.history.acknowledgements.slice(acknowledgedBefore).map(({ tookMs }) => tookMs));
  return {
    what: `${cluster.nodes.length} nodes restarted one after the other`,
    violations: [...stopViolations(stops), ...failed.map((told) => `rolling restart: ${told}`)],
    figures: {
      slowest_stop_ms: Math.round(Math.max(...stops.map(({ tookMs }) => tookMs))),
      slowest_append_ms: Math.round(slowestMs),
      failed_calls: failed.length,
    },
  };
};

/** 3 → 6 → 3 nodes. No call may fail. */
export const scale: Fault = async ({ cluster, load }) => {
  const failures = countFailures(load);
  const size = cluster.nodes.length;
  const before = await cluster.owners();
  await Promise.all(Array.from({ length: size }, () => cluster.grow()));
  const grownMs = await cluster.untilBalanced(balancedMaxMs);
  const after = await cluster.owners();
  const moved = [...after].filter(([shard, owner]) => before.get(shard) !== owner).length;
  const stops: Stopped[] = [];
  for (let n = 0; n < size; n++) stops.push(await cluster.shrink());
  const shrunkMs = await cluster.untilBalanced(balancedMaxMs);
  const failed = await failures();
  return {
    what: `${size} → ${2 * size} → ${size} nodes`,
    violations: [...stopViolations(stops), ...failed.map((told) => `scaling: ${told}`)],
    figures: {
      moved_percent: Math.round((100 * moved) / Math.max(1, after.size)),
      balanced_after_growing_ms: Math.round(grownMs),
      balanced_after_shrinking_ms: Math.round(shrunkMs),
      failed_calls: failed.length,
    },
  };
};

/** What is wrong with how nodes ended after SIGTERM (cluster.md: exit 0 within 20 s). */
export function stopViolations(stops: readonly Stopped[]): string[] {
  return stops.flatMap(({ id, code, tookMs }) => [
    ...(code === 0 ? [] : [`${id} ended with ${code ?? 'a signal'} after SIGTERM, and not with 0`]),
    ...(tookMs > stopMaxMs ? [`${id} took ${Math.round(tookMs)} ms to end`] : []),
  ]);
}

/** Calls that fail from now on: answers those that had been begun when it is asked, once they have all ended. */
function countFailures(load: Load): () => Promise<string[]> {
  const before = load.history.failed.length;
  return async () => {
    await load.settled();
    return load.history.failed.slice(before).map(({ name, last }) => `${name} failed (${last})`);
  };
}

async function ownerOfSomething({ cluster, world, random }: FaultContext): Promise<NodeUnderTest> {
  return (await cluster.ownerOf(random.pick(world.ledgers).id)) ?? random.pick(cluster.nodes);
}

async function ledgersOf({ cluster, world }: FaultContext, node: NodeUnderTest, owners: ReadonlyMap<number, string>) {
  const ids = world.ledgers.filter(({ id }) => owners.get(cluster.shardOf(id)) === node.id);
  return ids.length > 0 ? ids : world.ledgers.slice(0, 1);
}
