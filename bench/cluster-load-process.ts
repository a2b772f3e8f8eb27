import { answerJob } from './child.ts';
import type { LoadJob, LoadResult } from './load-job.ts';
import { loadStream } from './load-stream.ts';
import { VerificationProbe } from './verification-probe.ts';
import type { Counted } from './verifications.ts';

/** What came of the streams to all nodes. */
export interface ClusterLoadResult {
  readonly nodes: readonly LoadResult[];
  /** Until the last outcome. */
  readonly seconds: number;
  /** CPU time of the load generator since its start, in µs, without the probe's. */
  readonly cpuUs: number;
  /** What the probe verified meanwhile. */
  readonly verifications: Counted;
}

/** The load generator of a cluster, a process that streams to several nodes; jobs and results are JSON. */
await answerJob(async (jobs: LoadJob[]): Promise<ClusterLoadResult> => {
  const probe = await VerificationProbe.start();
  const startedMs = performance.now();
  const nodes = await Promise.all(jobs.map(loadStream));
  const seconds = (performance.now() - startedMs) / 1_000;
  const verifications = await probe.stop();
  const { user, system } = process.cpuUsage();
  return { nodes, seconds, cpuUs: user + system - verifications.cpuUs, verifications };
});
