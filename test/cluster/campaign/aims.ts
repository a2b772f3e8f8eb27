import { budgetMs } from '../../../cluster/peers/grpc-peers.ts';
import { faults as allFaults, type FaultKind } from '../faults/kinds.ts';
import { leaseTtlMs } from '../rig/cluster-under-test.ts';
import { percentile } from './percentiles.ts';

/** The least that a campaign must contain. */
export interface Demands {
  readonly kinds: readonly FaultKind[];
  readonly faults: number;
  readonly faultsOfEachKind: number;
  readonly kills: number;
  readonly acknowledged: number;
}

const fullDemands = { faults: 200, faultsOfEachKind: 15, kills: 100, acknowledged: 100_000 };

/** The least share of acknowledged appends near a fault. */
export const nearPercentMin = 30;
export const killRecoveryMaxMs = 3_000;
/** An append while Redis is gone or nodes are cut off. */
export const duringMaxMs = 3_000;
/** An append whose owner is silent: the owner's budget ends first. */
export const acrossMaxMs = budgetMs + duringMaxMs;
/** How long the shards of a killed node may have no other owner. */
export const movedMaxMs = leaseTtlMs + 2_000;
/** How long a shard may serve nobody in a rolling restart. */
export const unservedMaxMs = 2_000;

/** The demands on a plan: all its faults, at most as many as the full campaign demands. */
export function demandsOf(plan: readonly FaultKind[], acknowledged: number): Demands {
  const byKind = Map.groupBy(plan, (kind) => kind);
  const counts = [...byKind.values()].map(({ length }) => length);
  const kills = byKind.get('node_killed')?.length ?? 0;
  return {
    kinds: [...byKind.keys()],
    faults: Math.min(plan.length, fullDemands.faults),
    faultsOfEachKind: Math.min(...counts, fullDemands.faultsOfEachKind),
    kills: Math.min(kills, fullDemands.kills),
    acknowledged,
  };
}

export function isFull({ kinds, faults, faultsOfEachKind, kills, acknowledged }: Demands): boolean {
  return (
    kinds.length === Object.keys(allFaults).length &&
    faults >= fullDemands.faults &&
    faultsOfEachKind >= fullDemands.faultsOfEachKind &&
    kills >= fullDemands.kills &&
    acknowledged >= fullDemands.acknowledged
  );
}

/** A figure for JSON. null: not measured. 'endless': it never ended. */
type Found = number | 'endless' | null;

/** One demand, and the result. */
export interface Aim {
  readonly name: string;
  readonly wanted: string;
  readonly found: Found;
  /** The largest value, if `found` is a percentile. */
  readonly most?: Found;
  readonly reached: boolean;
}

export function atLeast(name: string, found: number, least: number): Aim {
  return { name, wanted: `at least ${least}`, found: shown(found), reached: found >= least };
}

export function below99th(name: string, values: readonly number[], bound: number): Aim {
  const [found, most] = [percentile(values, 99), percentile(values, 100)];
  const wanted = `below ${bound}`;
  return { name: `${name}, 99th percentile`, wanted, found: shown(found), most: shown(most), reached: found < bound };
}

export function none(name: string, found: number): Aim {
  return { name, wanted: '0', found: shown(found), reached: found === 0 };
}

export function aimText({ name, wanted, found, most = null, reached }: Aim): string {
  const largest = most === null ? '' : `, at most ${most}`;
  return `${reached ? '✓' : '✗'} ${name}: ${found ?? 'not measured'}${largest} (${wanted})`;
}

function shown(found: number): Found {
  if (found === Number.POSITIVE_INFINITY) return 'endless';
  return Number.isNaN(found) ? null : Math.round(found * 10) / 10;
}
