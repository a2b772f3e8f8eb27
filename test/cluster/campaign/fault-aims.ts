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
 * shown what it must, and a short one leaves that aim out. Only fair faults count, and only their times, but what never ended does always.
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
  ];
}

function fair(records: readonly FaultRecord[]): FaultRecord[] {
  return records.filter(({ isFair }) => isFair);
}

/** Times that are judged. */
function timesOf(records: readonly FaultRecord[], of: (outcome: FaultOutcome) => readonly number[]): number[] {
  return records.flatMap(({ isFair, outcome }) => of(outcome).filter((ms) => isFair || ms === never));
}

const recoveryOf = ({ recoveryMs = never }: FaultOutcome) => [recoveryMs];
const duringOf = ({ duringMs = [never] }: FaultOutcome) => duringMs;
const unservedOf = ({ unservedMs = [never] }: FaultOutcome) => unservedMs;

function killAims(kills: readonly FaultRecord[], demands: Demands): Aim[] {
  if (demands.kills === 0) return [];
  return [
    atLeast('owners killed by kill -9', fair(kills).length, demands.kills),
    below99th('ms until their ledgers take appends again', timesOf(kills, recoveryOf), killRecoveryMaxMs),
  ];
}

/** How long Cassandra's return may take a node is promised nowhere, that appends go on without a restart is (cluster.md). */
function recoveryAims(records: readonly FaultRecord[]): Aim[] {
  if (records.length === 0) return [];
  return [none('faults after which appends did not go on', endless(timesOf(records, recoveryOf)))];
}

function moveAims(kills: readonly FaultRecord[], demands: Demands): Aim[] {
  const moves = timesOf(kills, ({ movedMs = [never] }) => movedMs);
  return ifMeasured('ms until others have the shards of a killed node', moves, movedMaxMs, demands);
}

function duringAims(records: readonly FaultRecord[]): Aim[] {
  if (records.length === 0) return [];
  const during = timesOf(records, duringOf);
  const across = timesOf(records, ({ acrossMs = [] }) => acrossMs);
  return [
    none('appends in vain while Redis or nodes are away', endless([...during, ...across])),
    below99th('ms until a node has appended while Redis or nodes are away', during, duringMaxMs),
  ];
}

function acrossAims(cuts: readonly FaultRecord[], demands: Demands): Aim[] {
  const across = timesOf(cuts, ({ acrossMs = [never] }) => acrossMs);
  return ifMeasured('ms until it has where the owner keeps silent behind a cut', across, acrossMaxMs, demands);
}

/** A full campaign has to have measured it. */
function ifMeasured(name: string, valuesMs: readonly number[], boundMs: number, demands: Demands): Aim[] {
  return valuesMs.length === 0 && !isFull(demands) ? [] : [below99th(name, valuesMs, boundMs)];
}

function restartAims(restarts: readonly FaultRecord[]): Aim[] {
  if (restarts.length === 0) return [];
  const failed = restarts.reduce((sum, { outcome }) => sum + (outcome.figures?.failed_calls ?? Number.NaN), 0);
  const unserved = timesOf(restarts, unservedOf);
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
