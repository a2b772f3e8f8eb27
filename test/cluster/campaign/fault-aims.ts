import type { FaultOutcome } from '../faults/fault.ts';
import type { FaultKind } from '../faults/kinds.ts';
import {
  type Aim,
  acrossMaxMs,
  atLeast,
  below99th,
  type Demands,
  duringMaxMs,
  isFull,
  killRecoveryMaxMs,
  movedMaxMs,
  none,
  unservedMaxMs,
} from './aims.ts';
import { type FaultRecord, isFair } from './carry-out.ts';

/** Faults that wait for the first append after them. */
const recovered: readonly FaultKind[] = ['node_killed', 'cassandra_paused', 'cassandra_killed'];
const never = Number.POSITIVE_INFINITY;

/**
 * The aims for the faults of a campaign. A missing time counts as endless; an empty list means that there was nothing
 * to measure. Times of faults on a busy host have wider bounds (`unexplained`); failures count in every fault.
 */
export function faultAims(records: readonly FaultRecord[], demands: Demands): Aim[] {
  const of = (...wanted: readonly FaultKind[]) => records.filter(({ kind }) => wanted.includes(kind));
  const fewest = Math.min(...demands.kinds.map((kind) => fair(of(kind)).length));
  return [
    atLeast('faults', fair(records).length, demands.faults),
    atLeast('faults of the rarest kind', fewest, demands.faultsOfEachKind),
    ...killAims(of('node_killed'), demands),
    ...recoveryAims(of(...recovered)),
    ...moveAims(of('node_killed'), demands),
    ...duringAims(of('redis_stopped', 'cut_off')),
    ...acrossAims(of('cut_off'), demands),
    ...restartAims(of('rolling_restart')),
    none('times that a busy host does not explain', unexplained(records)),
  ];
}

type TimesOf = (outcome: FaultOutcome) => readonly number[];

const recoveryOf: TimesOf = ({ recoveryMs = never }) => [recoveryMs];
const movesOf: TimesOf = ({ movedMs = [never] }) => movedMs;
const duringOf: TimesOf = ({ duringMs = [never] }) => duringMs;
const acrossOf: TimesOf = ({ acrossMs = [never] }) => acrossMs;
const unservedOf: TimesOf = ({ unservedMs = [never] }) => unservedMs;

function fair(records: readonly FaultRecord[]): FaultRecord[] {
  return records.filter(isFair);
}

function timesOf(records: readonly FaultRecord[], of: TimesOf): number[] {
  return records.flatMap(({ outcome }) => of(outcome));
}

/** Of faults while the host kept the processors: times beyond twice the bound on as much less of them. */
function unexplained(records: readonly FaultRecord[]): number {
  return records
    .filter((record) => !isFair(record))
    .flatMap(({ kind, hostKept, outcome }) => {
      const bounds: readonly (readonly [readonly number[] | undefined, number])[] = [
        [kind === 'node_killed' ? recoveryOf(outcome) : [], killRecoveryMaxMs],
        [outcome.movedMs, movedMaxMs],
        [outcome.duringMs, duringMaxMs],
        [outcome.acrossMs, acrossMaxMs],
        [outcome.unservedMs, unservedMaxMs],
      ];
      return bounds.flatMap(([times = [], boundMs]) => times.filter((ms) => ms > (2 * boundMs) / (1 - hostKept)));
    }).length;
}

function killAims(kills: readonly FaultRecord[], demands: Demands): Aim[] {
  if (demands.kills === 0) return [];
  return [
    atLeast('owners killed by kill -9', fair(kills).length, demands.kills),
    below99th('ms until their ledgers take appends again', timesOf(fair(kills), recoveryOf), killRecoveryMaxMs),
  ];
}

/** The service promises that appends continue without a restart, but not how soon after Cassandra's return. */
function recoveryAims(records: readonly FaultRecord[]): Aim[] {
  if (records.length === 0) return [];
  return [none('faults after which appends did not go on', endless(timesOf(records, recoveryOf)))];
}

function moveAims(kills: readonly FaultRecord[], demands: Demands): Aim[] {
  return ifMeasured('ms until others have the shards of a killed node', kills, movesOf, movedMaxMs, demands);
}

function duringAims(records: readonly FaultRecord[]): Aim[] {
  if (records.length === 0) return [];
  const across = timesOf(records, ({ acrossMs = [] }) => acrossMs);
  return [
    none('appends in vain while Redis or nodes are away', endless([...timesOf(records, duringOf), ...across])),
    below99th(
      'ms until a node has appended while Redis or nodes are away',
      timesOf(fair(records), duringOf),
      duringMaxMs,
    ),
  ];
}

function acrossAims(cuts: readonly FaultRecord[], demands: Demands): Aim[] {
  return ifMeasured('ms until it has where the owner keeps silent behind a cut', cuts, acrossOf, acrossMaxMs, demands);
}

/** A short campaign may lack the measurement. */
function ifMeasured(
  name: string,
  records: readonly FaultRecord[],
  of: TimesOf,
  boundMs: number,
  demands: Demands,
): Aim[] {
  if (timesOf(records, of).length === 0 && !isFull(demands)) return [];
  return [below99th(name, timesOf(fair(records), of), boundMs)];
}

function restartAims(restarts: readonly FaultRecord[]): Aim[] {
  if (restarts.length === 0) return [];
  const failed = restarts.reduce((sum, { outcome }) => sum + (outcome.figures?.failed_calls ?? Number.NaN), 0);
  return [
    none('failed calls of clients that retry, in rolling restarts', failed),
    none('shards that nobody served again then', endless(timesOf(restarts, unservedOf))),
    below99th('ms that a shard serves nobody then', timesOf(fair(restarts), unservedOf), unservedMaxMs),
  ];
}

/** The number of times that never ended: a percentile would hide a few of them. */
function endless(valuesMs: readonly number[]): number {
  return valuesMs.filter((ms) => ms === never).length;
}
