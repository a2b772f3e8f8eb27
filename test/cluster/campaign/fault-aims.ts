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
import type { FaultRecord } from './fault-record.ts';

/** After these something is appended as soon as that is possible again, and that is waited for. */
const recovered: readonly FaultKind[] = ['node_killed', 'cassandra_paused', 'cassandra_killed'];
const never = Number.POSITIVE_INFINITY;

/**
 * Faults that were carried out, and what those of some kinds must show. What a fault was to measure and did not counts as endless: it
 * broke off. A fault that has nothing to measure says so by an empty list; where none of its kind had anything, a full campaign has not
 * shown what it must, and a short one leaves that aim out.
 */
export function faultAims(records: readonly FaultRecord[], demands: Demands): Aim[] {
  const of = (...wanted: readonly FaultKind[]): FaultOutcome[] =>
    records.filter(({ kind }) => wanted.includes(kind)).map(({ outcome }) => outcome);
  const fewest = Math.min(...demands.kinds.map((kind) => of(kind).length));
  return [
    atLeast('faults', records.length, demands.faults),
    atLeast('faults of the rarest kind', fewest, demands.faultsOfEachKind),
    ...killAims(of('node_killed'), demands),
    ...recoveryAims(of(...recovered)),
    ...moveAims(of('node_killed'), demands),
    ...duringAims(of('redis_stopped', 'cut_off')),
    ...acrossAims(of('cut_off'), demands),
    ...restartAims(of('rolling_restart')),
  ];
}

function killAims(kills: readonly FaultOutcome[], demands: Demands): Aim[] {
  if (demands.kills === 0) return [];
  const recoveries = kills.map(({ recoveryMs = never }) => recoveryMs);
  return [
    atLeast('owners killed by kill -9', kills.length, demands.kills),
    below99th('ms until their ledgers take appends again', recoveries, killRecoveryMaxMs),
  ];
}

/** How long Cassandra's return may take a node is promised nowhere, that appends go on without a restart is (cluster.md). */
function recoveryAims(outcomes: readonly FaultOutcome[]): Aim[] {
  if (outcomes.length === 0) return [];
  const recoveries = outcomes.map(({ recoveryMs = never }) => recoveryMs);
  return [none('faults after which appends did not go on', endless(recoveries))];
}

function moveAims(kills: readonly FaultOutcome[], demands: Demands): Aim[] {
  const moves = kills.flatMap(({ movedMs = [never] }) => movedMs);
  return ifMeasured('ms until others have the shards of a killed node', moves, movedMaxMs, demands);
}

function duringAims(outcomes: readonly FaultOutcome[]): Aim[] {
  if (outcomes.length === 0) return [];
  const during = outcomes.flatMap(({ duringMs = [never] }) => duringMs);
  const across = outcomes.flatMap(({ acrossMs = [] }) => acrossMs);
  return [
    none('appends in vain while Redis or nodes are away', endless([...during, ...across])),
    below99th('ms until a node has appended while Redis or nodes are away', during, duringMaxMs),
  ];
}

function acrossAims(cuts: readonly FaultOutcome[], demands: Demands): Aim[] {
  const across = cuts.flatMap(({ acrossMs = [never] }) => acrossMs);
  return ifMeasured('ms until it has where the owner keeps silent behind a cut', across, acrossMaxMs, demands);
}

/** A full campaign has to have measured it. */
function ifMeasured(name: string, valuesMs: readonly number[], boundMs: number, demands: Demands): Aim[] {
  return valuesMs.length === 0 && !isFull(demands) ? [] : [below99th(name, valuesMs, boundMs)];
}

function restartAims(restarts: readonly FaultOutcome[]): Aim[] {
  if (restarts.length === 0) return [];
  const failed = restarts.reduce((sum, { figures }) => sum + (figures?.failed_calls ?? Number.NaN), 0);
  const unserved = restarts.flatMap(({ unservedMs = [never] }) => unservedMs);
  return [
    none('failed calls of clients that retry, in rolling restarts', failed),
    none('shards that nobody served again then', endless(unserved)),
    below99th('ms that a shard serves nobody then', unserved, unservedMaxMs),
  ];
}

/** A percentile looks past what happened to few: how many never ended. */
function endless(valuesMs: readonly number[]): number {
  return valuesMs.filter((ms) => ms === never).length;
}
