import { runBareLoop } from './cluster-bare-loop.ts';
import type { BenchCluster } from './cluster-processes.ts';
import type { ClusterRunReport } from './cluster-run-report.ts';
import { threadsCpuUs } from './server-process.ts';
import type { Setting } from './setting.ts';
import { rounded } from './sum.ts';

/** Of one core: less than that is not seen in what is measured. */
const jitCoresMax = 0.1;
const loopSeconds = 10;
const loopsMax = 15;

/**
 * Sends bare loops of the batches of a run until Cassandra's JIT has compiled what they need. It takes some two minutes of one core
 * for that, which would be half of all that Cassandra does during the first run.
 */
export async function untilCompiled(
  cluster: BenchCluster,
  setting: Setting,
  { groupSizes }: ClusterRunReport,
  progress: (line: string) => void,
): Promise<void> {
  for (let loops = 1; ; loops++) {
    const [startedMs, before] = [performance.now(), jitUs(cluster)];
    const what = { withProjections: true, batchesPerSecond: null };
    await runBareLoop(cluster, setting, { groupSizes, seconds: loopSeconds }, what);
    const cores = (jitUs(cluster) - before) / 1_000 / (performance.now() - startedMs);
    if (cores > jitCoresMax && loops < loopsMax) continue;
    progress(`after ${loops} bare loop(s) Cassandra's JIT takes ${rounded(cores)} of a core`);
    return;
  }
}

/** HotSpot's compiler threads begin and end as they are needed, the first of each kind excepted, which has nearly all of it. */
function jitUs({ cassandraPid }: BenchCluster): number {
  return threadsCpuUs(cassandraPid, 'C1 Compiler', 'C2 Compiler');
}
