import { ledgerIds } from './commands.ts';
import type { World } from './node.ts';
import type { SeededRandom } from './random.ts';
import type { TablesCopy } from './tables.ts';
import { healthyWire } from './wire.ts';

/**
 * What an operator restores from an older copy in a run. `ledger`: the events of one ledger alone, so that its logs
 * lack events that were signed. `store`: all tables, which are then marked as a copy.
 */
type RestoreKind = 'none' | 'ledger' | 'store';

const weights: Readonly<Record<RestoreKind, number>> = { none: 70, ledger: 22, store: 8 };
/** No write that was sent before the nodes were stopped arrives later than this. */
const settledAfterMs = 2_300;
const restoresPerRun = 3;

export function restoreKindOf(random: SeededRandom): RestoreKind {
  return random.weighted(weights);
}

/**
 * Restores older copies while the clients go on. All nodes are stopped meanwhile, and tiles are left out, because
 * they may hold lost events. Before that, some nodes may fail to write. `onRestore` is called before each one.
 */
export async function restoreTimeAndAgain(
  world: World,
  kind: RestoreKind,
  hasMore: () => boolean,
  onRestore: () => void,
): Promise<void> {
  const { time, random, tables, nodes } = world;
  const pass = (ms: number) => new Promise<void>((resolve) => void time.after(ms, resolve));
  for (let made = 0; made < (kind === 'none' ? 0 : restoresPerRun); made++) {
    await pass(random.between(100, 500));
    if (!hasMore()) return;
    const copy = tables.copy();
    const unwritten = random.chance(0.7) ? [...nodes.values()].filter(() => random.chance(0.5)) : [];
    for (const { wires } of unwritten) wires.writes.cut = true;
    await pass(random.between(20, 400));
    world.isStopped = true;
    for (const node of nodes.values()) node.crash();
    await pass(settledAfterMs);
    onRestore();
    world.counts.restores++;
    if (kind === 'ledger') restoreLedger(world, copy, random.pick(ledgerIds));
    else restoreStore(world, copy);
    for (const { wires } of unwritten) Object.assign(wires.writes, healthyWire());
    for (const node of nodes.values()) node.restart();
    world.isStopped = false;
  }
}

function restoreLedger({ tables }: World, copy: TablesCopy, ledgerId: string): void {
  tables.restore(copy, 'ledger_event', 'ledger_id', ledgerId);
  for (const name of ['tile', 'tile_hash']) tables.restore(new Map(), name);
}

/** Then the operator takes a new origin, or forgets it: nothing is signed meanwhile. */
function restoreStore({ tables, logs, random }: World, copy: TablesCopy): void {
  for (const name of copy.keys()) tables.restore(copy, name);
  logs.isCopy = random.chance(0.5);
  if (!logs.isCopy) logs.serviceName = `${logs.serviceName}-new`;
}
