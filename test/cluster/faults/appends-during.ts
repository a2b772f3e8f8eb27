import { afterMs } from '../../../cluster/local/ports.ts';
import type { LoadLedger } from '../load/load-world.ts';
import type { NodeUnderTest } from '../rig/node-under-test.ts';
import { untilSettled } from '../rig/settled.ts';
import type { FaultContext, FaultOutcome } from './fault.ts';

const restMs = 250;
const settledMaxMs = 30_000;

export interface OwnedLedger {
  readonly ledger: LoadLedger;
  /** A node's id. */
  readonly owner: string;
}

/** An append that one node alone was asked for. */
export interface AppendDuring {
  readonly asked: string;
  /** Whose ledger it was when the fault began. */
  readonly owner: string;
  /** Infinity: in vain. */
  readonly tookMs: number;
}

/** A ledger of each node that owns any, once nothing is about to move. To be asked before anything is broken. */
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
 * Appends to each of the ledgers through each node, each append at one node alone, in rounds that begin within
 * `lastsMs`. Resolves when all
 * are answered or given up, so that nothing is mended before.
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

/** Durations of appends, separately for those with a silent owner, which is waited for first. */
export function acrossApart(
  appends: readonly AppendDuring[],
  silent: ReadonlySet<string>,
): Required<Pick<FaultOutcome, 'duringMs' | 'acrossMs'>> {
  const took = (wanted: boolean) =>
    appends.filter(({ asked, owner }) => (asked !== owner && silent.has(owner)) === wanted).map(({ tookMs }) => tookMs);
  return { duringMs: took(false), acrossMs: took(true) };
}
