import { SeededRandom } from '../simulation/random.ts';
import { demandsOf } from './campaign/aims.ts';
import type { FaultRecord } from './campaign/carry-out.ts';
import { type ReportParts, reportOf } from './campaign/report.ts';
import { type FaultKind, faults, planFaults } from './faults/kinds.ts';
import { LoadHistory } from './load/load-history.ts';

export const kinds = Object.keys(faults) as FaultKind[];
export const plan = planFaults(220, new SeededRandom(1));

/** The record of a fault with good times. */
export function record(kind: FaultKind, recoveryMs = 900): FaultRecord {
  const measured = {
    ...(kind === 'node_killed' ? { movedMs: [4_000] } : {}),
    ...(kind === 'redis_stopped' || kind === 'cut_off' ? { duringMs: [20, 2_600] } : {}),
    ...(kind === 'cut_off' ? { acrossMs: [2_600, 5_100] } : {}),
    ...(kind === 'rolling_restart' ? { figures: { failed_calls: 0 }, unservedMs: [500, 1_000] } : {}),
  };
  return { kind, beganMs: 10_000, endedMs: 40_000, hostKept: 0, outcome: { what: '', recoveryMs, ...measured } };
}

/** A full campaign that reaches all aims. */
export function fullParts(more: Partial<ReportParts> = {}): ReportParts {
  const history = new LoadHistory();
  for (let n = 0; n < 100_000; n++) history.acknowledgements.push({ atMs: n < 30_000 ? 9_000 : 90_000, tookMs: 1 });
  return {
    seed: 1,
    demands: demandsOf(plan, 100_000),
    records: plan.map((kind) => record(kind)),
    history,
    proofs: [{ kind: 'proved', events: 100 }],
    checked: { violations: [], events: 110_000 },
    scrub: { code: 0, ledgers: 24, events: 110_000, findings: 0, told: '' },
    tookMs: 1,
    ...more,
  };
}

/** The names of the aims that are not reached. */
export const missed = (more: Partial<ReportParts>) =>
  reportOf(fullParts(more))
    .aims.filter(({ reached }) => !reached)
    .map(({ name }) => name);
