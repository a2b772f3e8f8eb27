import type { CheckResult } from '../load/check.ts';
import type { LoadHistory } from '../load/load-history.ts';
import { type Aim, atLeast, type Demands, isFull, nearPercentMin, none } from './aims.ts';
import { type FaultRecord, isFair } from './carry-out.ts';
import { faultAims } from './fault-aims.ts';
import { type Percentiles, percentile, percentilesOf } from './percentiles.ts';
import type { Scrub } from './scrub.ts';
import type { Proof } from './verified-export.ts';

/** An append within this time of the beginning or end of a fault is near it. */
const nearMs = 5_000;
const violationsShown = 50;

/** The result of a campaign, as JSON. Times in milliseconds. */
export interface CampaignReport {
  readonly reached: boolean;
  /** Whether the demands are those of the full campaign. */
  readonly full: boolean;
  readonly aims: readonly Aim[];
  readonly seed: number;
  readonly seconds: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly faults_in_all: number;
  /** Faults that are not judged and count for no demand, because the host was busy. */
  readonly faults_on_a_busy_host: readonly BusyFault[];
  readonly acknowledged_appends: number;
  readonly near_a_fault_percent: number;
  readonly calls: Readonly<Record<string, number>>;
  /**
   * Calls without a certain answer. Allowed, except in planned restarts; their attempts are checked like all others.
   */
  readonly failed_calls: number;
  readonly events_checked: number;
  /** By kind, without faults on a busy host. */
  readonly recovery_ms: Readonly<Record<string, Percentiles>>;
  /** The smallest and largest value of each figure of a kind. */
  readonly figures: Readonly<Record<string, { readonly min: number; readonly max: number }>>;
  /** Ledgers exported during faults and verified offline. */
  readonly proofs: { readonly proved: number; readonly events: number; readonly not_read: number };
  /** What `cluster verify --all` found at the end. */
  readonly scrub: Scrub;
  readonly violations: number;
  readonly first_violations: readonly string[];
}

interface BusyFault {
  readonly kind: string;
  readonly host_kept_percent: number;
  readonly what: string;
  readonly longest_ms: Readonly<Record<string, number>>;
}

export interface ReportParts {
  readonly seed: number;
  readonly demands: Demands;
  readonly records: readonly FaultRecord[];
  readonly history: LoadHistory;
  readonly proofs: readonly Proof[];
  readonly checked: CheckResult;
  readonly scrub: Scrub;
  readonly tookMs: number;
}

export function reportOf(parts: ReportParts): CampaignReport {
  const { seed, demands, records, history, proofs, checked, scrub, tookMs } = parts;
  const edges = records.flatMap(({ beganMs, endedMs }) => [beganMs, endedMs]).sort((a, b) => a - b);
  const near = history.acknowledgements.filter(({ atMs }) => isNear(edges, atMs)).length;
  const acknowledged = history.acknowledgements.length;
  const violations = [
    ...records.flatMap(({ outcome }) => outcome.violations ?? []),
    ...proofs.flatMap((proof) => (proof.kind === 'failed' ? [`proof: ${proof.reason}`] : [])),
    ...checked.violations,
    ...(scrub.code === 0 ? [] : [`cluster verify --all ended with ${scrub.code}: ${scrub.told}`]),
  ];
  const proved = proofs.filter((proof) => proof.kind === 'proved');
  const nearPercent = (100 * near) / Math.max(1, acknowledged);
  const aims = [
    ...faultAims(records, demands),
    atLeast('acknowledged appends', acknowledged, demands.acknowledged),
    atLeast('percent of them within 5 s of a fault', nearPercent, nearPercentMin),
    none('violations', violations.length),
    atLeast('ledgers read during the faults and proved by export and verify', proved.length, 1),
    none('exit code of cluster verify --all', scrub.code ?? Number.NaN),
    atLeast('events that it verified', scrub.events, acknowledged),
  ];
  return {
    reached: aims.every(({ reached }) => reached),
    full: isFull(demands),
    aims,
    seed,
    seconds: Math.round(tookMs / 1_000),
    faults: countsOf(records.map(({ kind }) => kind)),
    faults_in_all: records.length,
    faults_on_a_busy_host: records.filter((record) => !isFair(record)).map(busyFault),
    acknowledged_appends: acknowledged,
    near_a_fault_percent: Math.round(10 * nearPercent) / 10,
    calls: countsOf(
      history.calls.map(({ result }) => (result.kind === 'refused' ? `refused ${result.code}` : result.kind)),
    ),
    failed_calls: history.failed.length,
    events_checked: checked.events,
    recovery_ms: recoveries(records.filter(isFair)),
    figures: figuresOf(records),
    proofs: {
      proved: proved.length,
      events: proved.reduce((sum, { events }) => sum + events, 0),
      not_read: proofs.filter(({ kind }) => kind === 'not_read').length,
    },
    scrub,
    violations: violations.length,
    first_violations: violations.slice(0, violationsShown),
  };
}

function isNear(edges: readonly number[], atMs: number): boolean {
  return edges.some((edge) => Math.abs(edge - atMs) <= nearMs);
}

function busyFault({ kind, hostKept, outcome }: FaultRecord): BusyFault {
  const { what, recoveryMs, movedMs = [], duringMs = [], acrossMs = [], unservedMs = [] } = outcome;
  const times = { recoveryMs: recoveryMs === undefined ? [] : [recoveryMs], movedMs, duringMs, acrossMs, unservedMs };
  const measured = Object.entries(times).filter(([, values]) => values.length > 0);
  const longest = measured.map(([name, values]) => [name, Math.round(percentile(values, 100))]);
  return { kind, host_kept_percent: Math.round(100 * hostKept), what, longest_ms: Object.fromEntries(longest) };
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function recoveries(records: readonly FaultRecord[]): Record<string, Percentiles> {
  const found: Record<string, Percentiles> = {};
  for (const [kind, all] of Map.groupBy(records, (record) => record.kind)) {
    const values = all.flatMap(({ outcome }) => outcome.recoveryMs ?? []);
    if (values.length > 0) found[kind] = percentilesOf(values);
  }
  return found;
}

function figuresOf(records: readonly FaultRecord[]): Record<string, { min: number; max: number }> {
  const figures: Record<string, { min: number; max: number }> = {};
  for (const { kind, outcome } of records)
    for (const [name, value] of Object.entries(outcome.figures ?? {})) {
      const known = figures[`${kind} ${name}`] ?? { min: value, max: value };
      figures[`${kind} ${name}`] = { min: Math.min(known.min, value), max: Math.max(known.max, value) };
    }
  return figures;
}
