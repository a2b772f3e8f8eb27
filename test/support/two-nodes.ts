import type { LedgerStore } from '../../src/store/ledger-store.ts';
import { ManualClock } from './clock.ts';
import { emptyLedgerData } from './memory-store/ledger-data.ts';
import { faultyLedgerStore, scriptedFaults } from './store-faults.ts';
import { openOrder, rig, startMs } from './world.ts';

/**
 * Two nodes over one store, each with its actor of a ledger of three events that the first one wrote. Resolves with the
 * first one's rig. `faults` and `replaced` are of the first one's store; `wrapOther` changes that of the other one.
 */
export async function twoNodes(wrapOther: (memory: LedgerStore) => LedgerStore = (memory) => memory) {
  const [clock, data, faults] = [new ManualClock(startMs), emptyLedgerData(), scriptedFaults()];
  const replaced: Partial<LedgerStore> = {};
  const here = rig({
    clock,
    data,
    // Looked up at each call, so that a test may replace a method while the actor lives.
    wrap: (memory) =>
      new Proxy(faultyLedgerStore(memory, faults.choose), {
        get: (target, name) => Reflect.get(replaced, name) ?? Reflect.get(target, name),
      }),
  });
  const elsewhere = rig({ clock, data, wrap: wrapOther });
  const [actor, other] = [here.newActor(), elsewhere.newActor()];
  await openOrder(actor);
  here.meter.claims.length = 0;
  return { ...here, actor, other, faults, replaced };
}
