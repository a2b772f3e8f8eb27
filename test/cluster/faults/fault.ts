import type { SeededRandom } from '../../simulation/random.ts';
import type { Load } from '../load/load.ts';
import type { LoadWorld } from '../load/load-world.ts';
import type { ClusterUnderTest } from '../rig/cluster-under-test.ts';

export interface FaultContext {
  readonly cluster: ClusterUnderTest;
  readonly load: Load;
  readonly world: LoadWorld;
  readonly random: SeededRandom;
}

export interface FaultOutcome {
  readonly what: string;
  /** From the fault to the first acknowledged append that began after it. Infinity: there was none. */
  readonly recoveryMs?: number;
  /** Durations of appends at one node during the fault. Infinity: it failed. */
  readonly duringMs?: readonly number[];
  /** The same for appends whose owner is silent behind a cut. They are not in `duringMs`. */
  readonly acrossMs?: readonly number[];
  /** From each kill until others held all shards of the node. Empty if that was not awaited. */
  readonly movedMs?: readonly number[];
  /** The longest time without service of each shard that was written to. */
  readonly unservedMs?: readonly number[];
  /** A sentence for each violation. */
  readonly violations?: readonly string[];
  readonly figures?: Readonly<Record<string, number>>;
  /** The steal share while the times were measured (host-watch.ts), if it differs from that of the whole fault. */
  readonly hostKept?: number;
  /** The variant that chance chose, to repeat it. */
  readonly again?: Fault;
}

/** Breaks a part of the cluster, repairs it, and resolves when the cluster is whole again. */
export type Fault = (context: FaultContext) => Promise<FaultOutcome>;

/** Carries out a variant that chance chose, and notes it in the outcome. */
export async function chosen(context: FaultContext, fault: Fault): Promise<FaultOutcome> {
  return { ...(await fault(context)), again: fault };
}
