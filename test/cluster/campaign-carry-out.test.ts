import { describe, expect, test } from 'vitest';
import { carryOutAll } from './campaign/carry-out.ts';
import type { Fault, FaultOutcome } from './faults/fault.ts';
import type { FaultKind } from './faults/kinds.ts';

const plan: readonly FaultKind[] = ['node_killed', 'cut_off', 'scaled'];
const variant: Fault = async () => ({ what: 'the same' });

/** Carries out faults on a host that withholds `kept[n]` of the processor time during the n-th fault. */
async function carriedOut(kept: readonly number[], { planned = plan, outcome = {}, faultsMax = 100 } = {}) {
  const told: string[] = [];
  const variants: (Fault | null)[] = [];
  const records = await carryOutAll({
    plan: planned,
    goesOn: async (done) => done < faultsMax,
    watchHost: () => ({ keptShare: () => kept[variants.length - 1] ?? 0 }),
    async carryOut(kind, again): Promise<FaultOutcome> {
      variants.push(again);
      return { what: kind, again: variant, ...outcome };
    },
    carriedOut: ({ kind }, { done, planned }) => told.push(`${done}/${planned} ${kind}`),
  });
  expect(told).toHaveLength(records.length);
  return { records, told, variants, kinds: records.map(({ kind }) => kind) };
}

describe('the faults of a campaign', () => {
  test('are those of its plan if the host is not busy', async () => {
    const { kinds, told, variants } = await carriedOut([0, 0.09, 0]);
    expect(kinds).toEqual(plan);
    expect(told).toEqual(['1/3 node_killed', '2/3 cut_off', '3/3 scaled']);
    expect(variants).toEqual([null, null, null]);
  });

  test('are repeated at the end with the same variant if the host was busy', async () => {
    const { kinds, told, variants, records } = await carriedOut([0, 0.1, 0, 0.6]);
    expect(kinds).toEqual([...plan, 'cut_off']);
    expect(told).toEqual(['1/3 node_killed', '2/4 cut_off', '3/4 scaled', '4/4 cut_off']);
    expect(variants).toEqual([null, null, null, variant]);
    expect(records.map(({ hostKept }) => hostKept)).toEqual([0, 0.1, 0, 0.6]);
  });

  test('are repeated at most once each on a host that is always busy', async () => {
    const planned: FaultKind[] = ['scaled', 'scaled', 'cut_off'];
    const { kinds } = await carriedOut(
      Array.from({ length: 20 }, () => 0.5),
      { planned },
    );
    expect(kinds).toEqual(['scaled', 'scaled', 'cut_off', 'scaled', 'scaled', 'cut_off']);
  });

  test('have the share of the host during their measurement', async () => {
    const fair = await carriedOut([0.9, 0.9, 0.9], { outcome: { hostKept: 0 } });
    expect(fair.kinds).toEqual(plan);
    const busy = await carriedOut([], { outcome: { hostKept: 0.9 } });
    expect(busy.kinds).toEqual([...plan, ...plan]);
  });

  test('end when no further one is requested', async () => {
    expect((await carriedOut([0.5], { faultsMax: 2 })).kinds).toEqual(['node_killed', 'cut_off']);
  });
});
