import { afterMs } from '../../../cluster/local/ports.ts';
import type { LoadLedger } from '../load/load-world.ts';
import type { FaultContext } from './fault.ts';

const restMs = 250;

/** A ledger of each node that owns any. To be asked before Redis is gone. */
export async function ledgerOfEachOwner({ cluster, world }: FaultContext): Promise<LoadLedger[]> {
  const owners = await cluster.owners();
  const byOwner = Map.groupBy(world.ledgers, ({ id }) => owners.get(cluster.shardOf(id)));
  return [...byOwner.values()].flatMap(([ledger]) => ledger ?? []);
}

/**
 * Appends to each of the ledgers through each node, each append at one node alone, in rounds that begin within `lastsMs`. Resolves when all
 * are answered or given up, so that nothing is mended before; answers how long each took, in milliseconds, Infinity where it was in vain.
 */
export async function appendDuring(
  { cluster, load }: FaultContext,
  ledgers: readonly LoadLedger[],
  lastsMs: number,
): Promise<number[]> {
  const beganMs = performance.now();
  const tookMs: number[] = [];
  do {
    const round = ledgers.flatMap((ledger) => cluster.nodes.map((node) => load.appendTo(ledger, [node])));
    for (const ms of await Promise.all(round)) tookMs.push(ms ?? Number.POSITIVE_INFINITY);
    await afterMs(restMs);
  } while (performance.now() - beganMs < lastsMs);
  return tookMs;
}
