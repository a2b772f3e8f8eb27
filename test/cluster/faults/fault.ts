import type { SeededRandom } from '../../simulation/random.ts';
import type { Load } from '../load/load.ts';
import type { LoadWorld } from '../load/load-world.ts';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';

/** What a fault works on. */
export interface FaultContext {
  readonly cluster: ClusterUnderTest;
  readonly load: Load;
  readonly world: LoadWorld;
  readonly random: SeededRandom;
}

/** What a fault found out while it lasted. */
export interface FaultOutcome {
  /** In words: what was done to whom. */
  readonly what: string;
  /** From the fault to the first acknowledged append that began after it, if measured. Infinity: none was. */
  readonly recoveryMs?: number;
  /** Durations of appends at one node during the fault, if measured. Infinity: it failed. */
  readonly duringMs?: readonly number[];
  /** The same for appends to a silent owner behind a cut, which are not in `duringMs`. Of each cut. */
  readonly acrossMs?: readonly number[];
  /** From each kill until others held all shards of the node; empty if that was not awaited. */
  readonly movedMs?: readonly number[];
  /** How long each shard that was written to served nobody at most, where that was measured. */
  readonly unservedMs?: readonly number[];
  /** What should not have been. */
  readonly violations?: readonly string[];
  /** Figures of this kind. */
  readonly figures?: Readonly<Record<string, number>>;
  /** The steal share while the times were measured (host-watch.ts), if it differs from that of the whole fault. */
  readonly hostKept?: number;
  /** The same once more, where chance chose among several. */
  readonly again?: Fault;
}

/** Breaks something, mends it, and resolves when the cluster is whole again. */
export type Fault = (context: FaultContext) => Promise<FaultOutcome>;

/** Carries out what chance chose, so that it can be had again. */
export async function chosen(context: FaultContext, fault: Fault): Promise<FaultOutcome> {
  return { ...(await fault(context)), again: fault };
}
