import { afterMs } from '../../../cluster/local/ports.ts';
import type { LoadLedger } from '../load/load-world.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { untilSettled } from '../rig/settled.ts';
import type { FaultContext, FaultOutcome } from './fault.ts';

const restMs = 250;
const settledMaxMs = 30_000;

interface OwnedLedger {
  readonly ledger: LoadLedger;
  /** A node's id. */
  readonly owner: string;
}

/** An append that was sent to one node only. */
interface AppendDuring {
  readonly asked: string;
  /** The ledger's owner when the fault began. */
  readonly owner: string;
  /** Infinity: it failed. */
  readonly tookMs: number;
}

/** Returns one ledger of each node that owns any, once no shard moves any more. Call it before the fault. */
export async function ledgerOfEachOwner({ cluster, world }: FaultContext): Promise<OwnedLedger[]> {
  await untilSettled(cluster, settledMaxMs);
  const owners = await cluster.owners();
  const found = new Map<string, LoadLedger>();
  for (const ledger of world.ledgers) {
    const owner = owners.get(cluster.shardOf(ledger.id));
    if (owner !== undefined && !found.has(owner)) found.set(owner, ledger);
  }
  return [...found].map(([owner, ledger]) => ({ owner, ledger }));
}

/**
 * Appends to each ledger through each node, in rounds that begin within `lastsMs`. Resolves when all appends are
 * answered or given up, so that the fault lasts as long.
 */
export async function appendDuring(
  { cluster, load }: FaultContext,
  ledgers: readonly OwnedLedger[],
  lastsMs: number,
): Promise<AppendDuring[]> {
  const beganMs = performance.now();
  const appends: AppendDuring[] = [];
  const appendAt = async (node: NodeUnderTest, { ledger, owner }: OwnedLedger) => {
    const tookMs = (await load.appendTo(ledger, [node])) ?? Number.POSITIVE_INFINITY;
    appends.push({ asked: node.id, owner, tookMs });
  };
  do {
    await Promise.all(ledgers.flatMap((owned) => cluster.nodes.map((node) => appendAt(node, owned))));
    await afterMs(restMs);
  } while (performance.now() - beganMs < lastsMs);
  return appends;
}

/** Returns the durations of appends, separately for those that first wait for a silent owner. */
export function acrossApart(
  appends: readonly AppendDuring[],
  silent: ReadonlySet<string>,
): Required<Pick<FaultOutcome, 'duringMs' | 'acrossMs'>> {
  const took = (wanted: boolean) =>
    appends.filter(({ asked, owner }) => (asked !== owner && silent.has(owner)) === wanted).map(({ tookMs }) => tookMs);
  return { duringMs: took(false), acrossMs: took(true) };
}
