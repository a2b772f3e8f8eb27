import { afterMs } from '../../../cluster/local/ports.ts';
import { desiredOwner } from '../../../cluster/placement/rendezvous.ts';
import type { ClusterUnderTest } from './cluster-under-test.ts';
import type { NodeUnderTest } from './node-under-test.ts';

const pollMs = 100;

/** Waits until every node knows all others and has the shards that placement assigns to it. */
export async function untilSettled({ nodes, owners }: ClusterUnderTest, maxMs: number): Promise<void> {
  const began = performance.now();
  while (!(await isSettled(nodes, await owners()))) {
    if (performance.now() - began > maxMs) throw new Error(`shards are not where they should be after ${maxMs} ms`);
    await afterMs(pollMs);
  }
}

async function isSettled(nodes: readonly NodeUnderTest[], owners: ReadonlyMap<number, string>): Promise<boolean> {
  const ids = nodes.map(({ id }) => id);
  if (owners.size === 0 || [...owners].some(([shard, owner]) => owner !== desiredOwner(shard, ids))) return false;
  const views = await Promise.all(nodes.map((node) => node.view().catch(() => null)));
  return views.every((view, at) => {
    const share = [...owners.values()].filter((owner) => owner === ids[at]).length;
    return view?.members.length === ids.length && view.shards.held === share;
  });
}
