import type { FaultOutcome } from '../faults/fault.ts';
import type { FaultKind } from '../faults/kinds.ts';
import type { CheckResult } from '../load/check.ts';
import type { LoadHistory } from '../load/load-history.ts';
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
  readonly proofs: { readonly proved: number; readonly events: number; readonly not_read: number };
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
  readonly records: readonly FaultRecord[];
  readonly history: LoadHistory;
  readonly proofs: readonly Proof[];
  readonly checked: CheckResult;
  readonly tookMs: number;
}

export function reportOf({ seed, records, history, proofs, checked, tookMs }: ReportParts): CampaignReport {
  const edges = records.flatMap(({ beganMs, endedMs }) => [beganMs, endedMs]).sort((a, b) => a - b);
  const near = history.acknowledgements.filter(({ atMs }) => isNear(edges, atMs)).length;
  const acknowledged = history.acknowledgements.length;
  const violations = [
    ...records.flatMap(({ outcome }) => outcome.violations ?? []),
    ...proofs.flatMap((proof) => (proof.kind === 'failed' ? [`proof: ${proof.reason}`] : [])),
    ...checked.violations,
  ];
  const proved = proofs.filter((proof) => proof.kind === 'proved');
  return {
    seed,
    seconds: Math.round(tookMs / 1_000),
    faults: countsOf(records.map(({ kind }) => kind)),
    faults_in_all: records.length,
    acknowledged_appends: acknowledged,
    near_a_fault_percent: Math.round((1_000 * near) / Math.max(1, acknowledged)) / 10,
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
    violations: violations.length,
    first_violations: violations.slice(0, violationsShown),
  };
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
