import { type CommitTotals, sumOfTotals } from './cluster-commits.ts';
import type { ClusterLoadResult } from './cluster-load-process.ts';
import { LatencyHistogram } from './latency.ts';
import type { LoadReport } from './load-report.ts';
import { meanOf, rounded, sumOf } from './sum.ts';

/** A measured run, per event of all that were sent. Latencies are those of the slowest node's streams. */
export interface ClusterRunReport extends LoadReport {
  /** Share of the events that came to another node than the owner's. */
  readonly forwarded: number;
  readonly cpuUsPerEvent: {
    readonly nodes: number;
    readonly nodesMainThreads: number;
    readonly cassandra: number;
    readonly loadGenerator: number;
  };
  /** CPU time of an Ed25519 verification by Node's crypto, in µs, measured behind each part. */
  readonly verificationCpuUs: number;
  readonly seconds: number;
}

/** A part of a run. CPU times are in µs, from before the load generator was started until it ended. */
export interface ClusterPart {
  readonly load: ClusterLoadResult;
  readonly wholeSeconds: number;
  readonly commits: CommitTotals;
  readonly nodesUs: number;
  readonly nodesMainUs: number;
  readonly cassandraUs: number;
  readonly machineUs: number;
  /** CPU time of a verification on all cores, behind the part. */
  readonly verificationCpuUs: number;
}

export function clusterRunReport(ledgers: number, parts: readonly ClusterPart[]): ClusterRunReport {
  const commits = sumOfTotals(parts.map((part) => part.commits));
  const loads = parts.map(({ load }) => load);
  const streams = loads.flatMap(({ nodes }) => nodes);
  const [accepted, refused] = [sumOf(streams, (node) => node.accepted), sumOf(streams, (node) => node.refused)];
  const events = accepted + refused;
  const [seconds, loadUs] = [sumOf(loads, (load) => load.seconds), sumOf(loads, ({ cpuUs }) => cpuUs)];
  const [nodesUs, cassandraUs] = [sumOf(parts, (part) => part.nodesUs), sumOf(parts, (part) => part.cassandraUs)];
  const othersUs = sumOf(parts, ({ machineUs }) => machineUs) - nodesUs - cassandraUs - loadUs;
  const latencies = latenciesOf(loads);
  return {
    ...{ ledgers, events, accepted, refused },
    perSecond: Math.round(accepted / seconds),
    p50Ms: rounded(Math.max(...latencies.map((one) => one.percentileMs(0.5)))),
    p99Ms: rounded(Math.max(...latencies.map((one) => one.percentileMs(0.99)))),
    eventsPerCommit: rounded(commits.events / commits.commits),
    commitMs: rounded((commits.seconds / commits.commits) * 1_000),
    forwarded: rounded(commits.forwarded / accepted),
    cpuUsPerEvent: {
      nodes: rounded(nodesUs / events),
      nodesMainThreads: rounded(sumOf(parts, (part) => part.nodesMainUs) / events),
      cassandra: rounded(cassandraUs / events),
      loadGenerator: rounded(loadUs / events),
    },
    verificationCpuUs: rounded(meanOf(parts.map((part) => part.verificationCpuUs))),
    coresOfOthers: rounded(othersUs / (sumOf(parts, ({ wholeSeconds }) => wholeSeconds) * 1e6)),
    seconds: rounded(seconds),
  };
}

/** Of each node's streams. */
function latenciesOf(loads: readonly ClusterLoadResult[]): LatencyHistogram[] {
  const nodes = loads[0]?.nodes ?? [];
  return nodes.map((_, node) => {
    const latencies = new LatencyHistogram();
    for (const load of loads) latencies.add(load.nodes[node]?.latencyCounts ?? []);
    return latencies;
  });
}
