import type { Load } from '../load/load.ts';
import { unserved } from '../load/served.ts';
import type { Stopped } from '../rig/node-under-test.ts';
import { openOneAddress } from '../rig/one-address.ts';
import type { Fault } from './fault.ts';

const balancedMaxMs = 60_000;
const stopMaxMs = 20_000;
/** Bounds of "about half of the shards": chance divides the shards of six nodes. */
const movedPercentMin = 100 / 3;
const movedPercentMax = 200 / 3;

/** Stops each node in turn by SIGTERM and starts it again. No call may fail. */
export const rollingRestart: Fault = async ({ cluster, load }) => {
  const failures = countFailures(load);
  await using front = await openOneAddress(cluster.nodes);
  await using callers = load.callThrough(front);
  const beganMs = performance.now();
  const stops: Stopped[] = [];
  for (const node of [...cluster.nodes]) {
    stops.push(await node.terminate());
    await node.start();
  }
  await cluster.untilBalanced(balancedMaxMs);
  const endedMs = performance.now();
  const { answered, attemptsMost } = await callers.stop();
  const failed = await failures();
  // Without the calls of the usual callers: their clients retry by themselves.
  const attempts = load.history.calls.filter((call) => cluster.nodes.some(({ id }) => id === call.node));
  const unservedMs = [...unserved(attempts, cluster.shardOf, beganMs, endedMs).values()];
  return {
    what: `${cluster.nodes.length} nodes restarted one after the other`,
    unservedMs,
    violations: [
      ...stopViolations(stops),
      ...unansweredViolations(answered),
      ...failed.map((told) => `rolling restart: ${told}`),
    ],
    figures: {
      slowest_stop_ms: Math.round(Math.max(...stops.map(({ tookMs }) => tookMs))),
      longest_unserved_shard_ms: Math.round(Math.max(...unservedMs)),
      failed_calls: failed.length,
      most_attempts_of_the_client: attemptsMost,
    },
  };
};

/** 3 → 6 → 3 nodes. No call may fail, and about half of the shards move each time. */
export const scale: Fault = async ({ cluster, load }) => {
  const failures = countFailures(load);
  await using front = await openOneAddress(cluster.nodes);
  await using callers = load.callThrough(front);
  const size = cluster.nodes.length;
  // A node that the previous fault restarted may still lack its share.
  await cluster.untilBalanced(balancedMaxMs);
  const before = await cluster.owners();
  // The next fault needs the old number of nodes, even if this one fails.
  await using _ = {
    async [Symbol.asyncDispose]() {
      while (cluster.nodes.length > size) await cluster.shrink();
    },
  };
  const added = await Promise.allSettled(Array.from({ length: size }, () => cluster.grow()));
  for (const one of added) {
    if (one.status === 'rejected') throw one.reason;
    front.add(one.value);
  }
  const grownMs = await cluster.untilBalanced(balancedMaxMs);
  const grown = await cluster.owners();
  const stops: Stopped[] = [];
  for (let n = 0; n < size; n++) stops.push(await cluster.shrink());
  const shrunkMs = await cluster.untilBalanced(balancedMaxMs);
  const shrunk = await cluster.owners();
  const { answered, attemptsMost } = await callers.stop();
  const failed = await failures();
  const moved = { growing: movedPercent(before, grown), shrinking: movedPercent(grown, shrunk) };
  return {
    what: `${size} → ${2 * size} → ${size} nodes`,
    violations: [
      ...stopViolations(stops),
      ...moveViolations(moved),
      ...unansweredViolations(answered),
      ...failed.map((told) => `scaling: ${told}`),
    ],
    figures: {
      moved_percent: Math.round(moved.growing),
      moved_back_percent: Math.round(moved.shrinking),
      balanced_after_growing_ms: Math.round(grownMs),
      balanced_after_shrinking_ms: Math.round(shrunkMs),
      failed_calls: failed.length,
      most_attempts_of_the_client: attemptsMost,
    },
  };
};

function movedPercent(before: ReadonlyMap<number, string>, after: ReadonlyMap<number, string>): number {
  const moved = [...after].filter(([shard, owner]) => before.get(shard) !== owner).length;
  return (100 * moved) / Math.max(1, after.size);
}

/** Returns violations of the rule that about half of the shards move. */
export function moveViolations(moved: { readonly growing: number; readonly shrinking: number }): string[] {
  return Object.entries(moved)
    .filter(([, percent]) => percent < movedPercentMin || percent > movedPercentMax)
    .map(([when, percent]) => `${Math.round(percent)} % of the shards moved when ${when}, and not about half`);
}

/** Returns violations of the rule that nodes exit with 0 within 20 s of SIGTERM. */
export function stopViolations(stops: readonly Stopped[]): string[] {
  return stops.flatMap(({ id, code, tookMs }) => [
    ...(code === 0 ? [] : [`${id} ended with ${code ?? 'a signal'} after SIGTERM, and not with 0`]),
    ...(tookMs > stopMaxMs ? [`${id} took ${Math.round(tookMs)} ms to end`] : []),
  ]);
}

/** Returns a violation for each transport without any answered call: no call failed there either. */
function unansweredViolations(answered: Readonly<Record<string, number>>): string[] {
  return Object.entries(answered).flatMap(([transport, calls]) =>
    calls === 0 ? [`no call over ${transport} was answered at the one address`] : [],
  );
}

/** Returns a function that waits for the calls under way and returns those that failed since now. */
function countFailures(load: Load): () => Promise<string[]> {
  const before = load.history.failed.length;
  return async () => {
    await load.settled();
    return load.history.failed.slice(before).map(({ name, attempts }) => `${name} failed (${attempts.join('; ')})`);
  };
}
