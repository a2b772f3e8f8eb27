import type { FaultOutcome } from '../faults/fault.ts';
import type { FaultKind } from '../faults/kinds.ts';
import type { CheckResult } from '../load/check.ts';
import type { LoadHistory } from '../load/load-history.ts';
import {
  type Aim,
  atLeast,
  below,
  type Demands,
  duringMaxMs,
  isFull,
  killRecoveryMaxMs,
  movedMaxMs,
  nearPercentMin,
  none,
  unservedMaxMs,
} from './aims.ts';
import type { Scrub } from './scrub.ts';
import type { Proof } from './verified-export.ts';

/** So far from a fault an append is said to fall near it. */
const nearMs = 5_000;
const violationsShown = 50;

export interface FaultRecord {
  readonly kind: FaultKind;
  readonly beganMs: number;
  readonly endedMs: number;
  readonly outcome: FaultOutcome;
}

/** What a campaign found, as JSON. Times in milliseconds. */
export interface CampaignReport {
  /** All aims are. */
  readonly reached: boolean;
  /** Whether what was demanded is what the full campaign demands; a shorter one is for a look. */
  readonly full: boolean;
  readonly aims: readonly Aim[];
  readonly seed: number;
  readonly seconds: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly faults_in_all: number;
  readonly acknowledged_appends: number;
  /** Within 5 s of the beginning or the end of a fault. */
  readonly near_a_fault_percent: number;
  readonly calls: Readonly<Record<string, number>>;
  readonly failed_calls: number;
  readonly events_checked: number;
  readonly recovery_ms: Readonly<Record<string, Percentiles>>;
  /** The largest and the smallest of each figure that a kind has. */
  readonly figures: Readonly<Record<string, { readonly min: number; readonly max: number }>>;
  /** Ledgers exported during faults and verified offline. */
  readonly proofs: { readonly proved: number; readonly events: number; readonly not_read: number };
  /** What `cluster verify --all` found at the end. */
  readonly scrub: Scrub;
  readonly violations: number;
  readonly first_violations: readonly string[];
}

export interface Percentiles {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
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
    acknowledged_appends: acknowledged,
    near_a_fault_percent: Math.round(10 * nearPercent) / 10,
    calls: countsOf(history.calls.map(({ told }) => (told.kind === 'refused' ? `refused ${told.code}` : told.kind))),
    failed_calls: history.failed.length,
    events_checked: checked.events,
    recovery_ms: recoveries(records),
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

/** Faults that were carried out, and what those of some kinds must show. */
function faultAims(records: readonly FaultRecord[], demands: Demands): Aim[] {
  const of = (wanted: FaultKind) => records.filter(({ kind }) => kind === wanted);
  const kills = of('node_killed').map(({ outcome }) => outcome.recoveryMs ?? Number.POSITIVE_INFINITY);
  const moves = of('node_killed').flatMap(({ outcome }) => outcome.movedMs ?? []);
  const during = [...of('redis_stopped'), ...of('cut_off')].flatMap(
    ({ outcome }) => outcome.duringMs ?? [Number.POSITIVE_INFINITY],
  );
  const restarts = of('rolling_restart');
  const unserved = restarts.flatMap(({ outcome }) => outcome.unservedMs ?? [Number.POSITIVE_INFINITY]);
  const failed = restarts.reduce((sum, { outcome }) => sum + (outcome.figures?.failed_calls ?? Number.NaN), 0);
  const fewest = Math.min(...demands.kinds.map((kind) => of(kind).length));
  return [
    atLeast('faults', records.length, demands.faults),
    atLeast('faults of the rarest kind', fewest, demands.faultsOfEachKind),
    ...(demands.kills === 0
      ? []
      : [
          atLeast('owners killed by kill -9', kills.length, demands.kills),
          below('ms until their ledgers take appends again, 99th percentile', percentile(kills, 99), killRecoveryMaxMs),
        ]),
    ...(moves.length === 0
      ? []
      : [
          below('ms until others have the shards of a killed node, 99th percentile', percentile(moves, 99), movedMaxMs),
        ]),
    ...(during.length === 0
      ? []
      : [
          below(
            'ms until a node has appended while Redis or nodes are away, 99th percentile',
            percentile(during, 99),
            duringMaxMs,
          ),
        ]),
    ...(restarts.length === 0
      ? []
      : [
          none('failed calls of clients that retry, in rolling restarts', failed),
          below('ms that a shard serves nobody then, 99th percentile', percentile(unserved, 99), unservedMaxMs),
        ]),
  ];
}

/** The smallest value that so many percent are not above. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}

function isNear(edges: readonly number[], atMs: number): boolean {
  return edges.some((edge) => Math.abs(edge - atMs) <= nearMs);
}

function countsOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function recoveries(records: readonly FaultRecord[]): Record<string, Percentiles> {
  const byKind = Map.groupBy(records, ({ kind }) => kind);
  const found: Record<string, Percentiles> = {};
  for (const [kind, all] of byKind) {
    const values = all.flatMap(({ outcome }) => (outcome.recoveryMs === undefined ? [] : [outcome.recoveryMs]));
    if (values.length === 0) continue;
    const at = (percent: number) => Math.round(percentile(values, percent));
    found[kind] = { count: values.length, p50: at(50), p99: at(99), max: at(100) };
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
