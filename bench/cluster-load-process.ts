import { answerJobs } from './forked.ts';
import type { LoadJob, LoadResult } from './load-job.ts';
import { loadStream } from './load-stream.ts';

/** What came of the streams to all nodes. */
export interface ClusterLoadResult {
  readonly nodes: readonly LoadResult[];
  /** Until the last outcome. */
  readonly seconds: number;
  /** CPU time of the load generator since its start, in µs. */
  readonly cpuUs: number;
}

/** The load generator of a cluster, a process that streams to several nodes; jobs and results are JSON. */
answerJobs(async (jobs: LoadJob[]): Promise<ClusterLoadResult> => {
  const startedMs = performance.now();
  const nodes = await Promise.all(jobs.map(loadStream));
  const seconds = (performance.now() - startedMs) / 1_000;
  const { user, system } = process.cpuUsage();
  return { nodes, seconds, cpuUs: user + system };
});
