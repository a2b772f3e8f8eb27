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
  /**
   * From the fault to the first append acknowledged that was begun after it, where that was measured. Infinity: none
   * was.
   */
  readonly recoveryMs?: number;
  /**
   * How long each append took that one node was asked for while the fault lasted, where that was measured. Infinity: it
   * was in vain.
   */
  readonly duringMs?: readonly number[];
  /**
   * The same of those to an owner that kept silent behind a cut, which are not among the others: it is waited for
   * first. Of each cut.
   */
  readonly acrossMs?: readonly number[];
  /**
   * From a kill until others held all shards of the node that was killed. Of each kill; empty where that was not waited
   * for.
   */
  readonly movedMs?: readonly number[];
  /** How long each shard that was written to served nobody at most, where that was measured. */
  readonly unservedMs?: readonly number[];
  /** What should not have been. */
  readonly violations?: readonly string[];
  /** Figures of this kind. */
  readonly figures?: Readonly<Record<string, number>>;
  /**
   * What the host kept of the processors while its times were taken (host-watch.ts), where that is not the same as all
   * through the fault.
   */
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
