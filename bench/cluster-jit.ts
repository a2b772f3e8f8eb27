import { runBareLoop } from './cluster-bare-loop.ts';
import type { BenchCluster } from './cluster-processes.ts';
import type { ClusterRunReport } from './cluster-run-report.ts';
import { cpuTime, threadsCpuUs } from './server-process.ts';
import type { Setting } from './setting.ts';
import { rounded, sumOf } from './sum.ts';

/** Of Cassandra's CPU. */
const jitShareMax = 0.1;
const loopSeconds = 10;
const loopsMax = 15;

/** How Cassandra's JIT stood when a run began. */
export interface JitReport {
  readonly bareLoops: number;
  /** What its threads had of Cassandra's CPU in the last of them. */
  readonly jitShare: number;
  /** Whether that is little; false: it was not waited for any longer. */
  readonly isLittle: boolean;
}

/**
 * Sends bare loops of the batches of a run, behind its warm-up, until Cassandra's JIT has little to do. It goes on for
 * minutes, and may take half of Cassandra's CPU, which is no cost of an append.
 */
export async function untilCompiled(
  cluster: BenchCluster,
  setting: Setting,
  { groupSizes }: ClusterRunReport,
): Promise<JitReport> {
  for (let bareLoops = 1; ; bareLoops++) {
    const [allBefore, before] = [cpuTime(cluster.cassandraPid).allUs, compilerThreads(cluster)];
    const what = { withProjections: true, batchesPerSecond: null };
    await runBareLoop(cluster, setting, { groupSizes, seconds: loopSeconds }, what);
    // A compiler thread that ended takes its last seconds with it; without work there is no such thread.
    const jitUs = sumOf([...compilerThreads(cluster)], ([thread, us]) => us - (before.get(thread) ?? 0));
    const jitShare = jitUs / (cpuTime(cluster.cassandraPid).allUs - allBefore);
    const isLittle = jitShare <= jitShareMax;
    if (isLittle || bareLoops >= loopsMax) return { bareLoops, jitShare: rounded(jitShare), isLittle };
  }
}

/** HotSpot's, as it names them. */
function compilerThreads({ cassandraPid }: BenchCluster): Map<string, number> {
  return threadsCpuUs(cassandraPid, 'C1 Compiler', 'C2 Compiler');
}
