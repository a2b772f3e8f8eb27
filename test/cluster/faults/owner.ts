import { afterMs } from '../../../cluster/local/ports.ts';
import type { LoadLedger } from '../load/load-world.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import type { FaultContext } from './fault.ts';

/** Far longer than shards are ever under way. */
const ownedMaxMs = 30_000;
const pollMs = 50;

/**
 * The owner of something that is written to, with all of that which it owns. It is waited for: shards may be on their
 * way to it, and those of a node that was killed a moment ago stand in Redis under its name until they run out, though
 * the one started again has none of them.
 */
export async function ownerOfSomething({
  cluster,
  world,
  random,
}: Pick<FaultContext, 'cluster' | 'world' | 'random'>): Promise<{
  readonly victim: NodeUnderTest;
  readonly hit: readonly LoadLedger[];
}> {
  const beganMs = performance.now();
  const { id } = random.pick(world.ledgers);
  while (performance.now() - beganMs < ownedMaxMs) {
    const owners = await cluster.owners();
    const ownerOf = (ledgerId: string) => owners.get(cluster.shardOf(ledgerId));
    const victim = cluster.nodes.find((node) => node.id === ownerOf(id));
    if (victim !== undefined && (await hasItsShards(victim, owners)))
      return { victim, hit: world.ledgers.filter((one) => ownerOf(one.id) === victim.id) };
    await afterMs(pollMs);
  }
  throw new Error(`nobody came to own ledger ${id} in ${ownedMaxMs} ms`);
}

/** Whether a node has as many shards by its own account as Redis says. */
async function hasItsShards(node: NodeUnderTest, owners: ReadonlyMap<number, string>): Promise<boolean> {
  const view = await node.view().catch(() => null);
  const share = [...owners.values()].filter((owner) => owner === node.id).length;
  return view !== null && view.shards.held + view.shards.leaving >= share;
}
