import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../simulation/random.ts';
import { percentile, reportOf } from './campaign/report.ts';
import { faults, planFaults } from './faults/kinds.ts';
import { LoadHistory } from './load/load-history.ts';

const kinds = Object.keys(faults);

function counted(plan: readonly string[]): Record<string, number> {
  return Object.fromEntries(kinds.map((kind) => [kind, plan.filter((planned) => planned === kind).length]));
}

describe('a campaign', () => {
  test('of 220 faults kills nodes 100 times and has 15 faults of each other kind', () => {
    const plan = planFaults(220, new SeededRandom(1));
    expect(plan).toHaveLength(220);
    const { node_killed: kills, ...others } = counted(plan);
    expect(kills).toBe(100);
    expect(new Set(Object.values(others))).toEqual(new Set([15]));
  });

  test('of one seed is the same plan again, of another one another', () => {
    const plan = planFaults(220, new SeededRandom(7));
    expect(planFaults(220, new SeededRandom(7))).toEqual(plan);
    expect(planFaults(220, new SeededRandom(8))).not.toEqual(plan);
  });

  test.each([
    [99, 99],
    [50, 50],
    [100, 100],
  ])('the %i th percentile of 1 to 100 is %i', (percent, value) => {
    const values = Array.from({ length: 100 }, (_, at) => 100 - at);
    expect(percentile(values, percent)).toBe(value);
  });

  test('counts an append as near a fault within five seconds of its beginning or end', () => {
    const history = new LoadHistory();
    for (const atMs of [4_000, 5_000, 20_000, 44_999, 45_001]) history.acknowledgements.push({ atMs, tookMs: 1 });
    const records = [{ kind: 'node_killed', beganMs: 10_000, endedMs: 40_000, outcome: { what: '' } }] as const;
    const checked = { violations: [], events: 0 };
    expect(reportOf({ seed: 1, records, history, proofs: [], checked, tookMs: 1 }).near_a_fault_percent).toBe(40);
  });

  test('reports a violation wherever it was found', () => {
    const outcome = { what: '', violations: ['by a fault'] };
    const report = reportOf({
      seed: 1,
      records: [{ kind: 'scaled', beganMs: 0, endedMs: 1, outcome }],
      history: new LoadHistory(),
      proofs: [{ kind: 'failed', reason: 'by verify' }],
      checked: { violations: ['by the checker'], events: 0 },
      tookMs: 1,
    });
    expect(report.violations).toBe(3);
    expect(report.first_violations).toEqual(['by a fault', 'proof: by verify', 'by the checker']);
  });
});
