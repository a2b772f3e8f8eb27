import { budgetMs } from '../../../cluster/peers/grpc-peers.ts';
import { faults as allFaults, type FaultKind } from '../faults/kinds.ts';
import { leaseTtlMs } from '../rig/cluster-under-test.ts';
import { percentile } from './percentiles.ts';

/** What a campaign has to have done. */
export interface Demands {
  readonly kinds: readonly FaultKind[];
  readonly faults: number;
  readonly faultsOfEachKind: number;
  /** Owners killed by kill -9. */
  readonly kills: number;
  readonly acknowledged: number;
}

/** Of the one that shows that nothing is lost. */
const fullDemands = { faults: 200, faultsOfEachKind: 15, kills: 100, acknowledged: 100_000 };

/** Of what was acknowledged, so much has to fall near a fault. */
export const nearPercentMin = 30;
export const killRecoveryMaxMs = 3_000;
/** While Redis is gone, or nodes are cut off, each node has appended within this time. */
export const duringMaxMs = 3_000;
/** The budget of a silent owner has to end first; then the node appends within the same time. */
export const acrossMaxMs = budgetMs + duringMaxMs;
/** The shards of a killed node are with others after TTL + 2 s. */
export const movedMaxMs = leaseTtlMs + 2_000;
/** A shard serves again within this time in a rolling restart. */
export const unservedMaxMs = 2_000;

/** What a plan asks for: all of itself, as far as the full campaign goes. */
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

/** Whether as much is demanded as of the full campaign. */
export function isFull({ kinds, faults, faultsOfEachKind, kills, acknowledged }: Demands): boolean {
  return (
    kinds.length === Object.keys(allFaults).length &&
    faults >= fullDemands.faults &&
    faultsOfEachKind >= fullDemands.faultsOfEachKind &&
    kills >= fullDemands.kills &&
    acknowledged >= fullDemands.acknowledged
  );
}

/** As JSON can say it. null: it was not measured; 'endless': it never ended. */
export type Found = number | 'endless' | null;

/** One thing that is demanded, and what was found. */
export interface Aim {
  readonly name: string;
  readonly wanted: string;
  readonly found: Found;
  /** Beside a percentile, the largest value. */
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

/** In words, for people. */
export function aimText({ name, wanted, found, most = null, reached }: Aim): string {
  const largest = most === null ? '' : `, at most ${most}`;
  return `${reached ? '✓' : '✗'} ${name}: ${found ?? 'not measured'}${largest} (${wanted})`;
}

function shown(found: number): Found {
  if (found === Number.POSITIVE_INFINITY) return 'endless';
  return Number.isNaN(found) ? null : Math.round(found * 10) / 10;
}
