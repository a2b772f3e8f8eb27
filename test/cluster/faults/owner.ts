import { afterMs } from '../../../cluster/local/ports.ts';
import type { LoadLedger } from '../load/load-world.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import type { FaultContext } from './fault.ts';

/** Far longer than a hand-over takes. */
const ownedMaxMs = 30_000;
const pollMs = 50;

/**
 * Returns the owner of a random ledger of the load, with all ledgers that it owns. Waits until the node itself reports
 * its shards: after a kill, Redis names the restarted node as the owner until the old leases run out.
 */
export async function ownerOfSomething(
  { cluster, world, random }: Pick<FaultContext, 'cluster' | 'world' | 'random'>,
  maxMs = ownedMaxMs,
): Promise<{
  readonly victim: NodeUnderTest;
  readonly hit: readonly LoadLedger[];
}> {
  const beganMs = performance.now();
  const { id } = random.pick(world.ledgers);
  while (performance.now() - beganMs < maxMs) {
    const owners = await cluster.owners();
    const ownerOf = (ledgerId: string) => owners.get(cluster.shardOf(ledgerId));
    const victim = cluster.nodes.find((node) => node.id === ownerOf(id));
    if (victim !== undefined && (await hasItsShards(victim, owners)))
      return { victim, hit: world.ledgers.filter((one) => ownerOf(one.id) === victim.id) };
    await afterMs(pollMs);
  }
  throw new Error(`nobody came to own ledger ${id} in ${maxMs} ms`);
}

/** Whether a node reports at least as many shards as Redis says that it has. */
async function hasItsShards(node: NodeUnderTest, owners: ReadonlyMap<number, string>): Promise<boolean> {
  const view = await node.view().catch(() => null);
  const share = [...owners.values()].filter((owner) => owner === node.id).length;
  return view !== null && view.shards.held + view.shards.leaving >= share;
}
