import type { CommitTotals } from './cluster-commits.ts';
import { LatencyHistogram } from './latency.ts';
import type { LoadResult } from './load-job.ts';
import type { LoadReport } from './load-report.ts';
import type { Transport } from './options.ts';
import { rounded, sumOf } from './sum.ts';

export interface RunReport extends LoadReport {
  readonly transport: Transport;
  /** As `perSecond`, with the filling and the draining of each part. */
  readonly perSecondWhole: number;
  readonly cpuUsPerEvent: {
    readonly server: number;
    readonly serverMainThread: number;
    readonly loadGenerator: number;
    /** Of the server while the limit was looked at: what it has put off, which is in none of the others. */
    readonly serverBetweenParts: number;
  };
  /** The limit, as it was beside each part for as long as that part was in full flow. */
  readonly verificationsPerSecond: number;
  /** Each look at it, before the first part and after each one. */
  readonly verificationsMeasured: readonly number[];
}

/** A part of a run. CPU times are in µs, from before its load generator was told until it answered. */
export interface MeasuredPart {
  readonly load: LoadResult;
  readonly wholeSeconds: number;
  readonly serverUs: number;
  readonly serverMainUs: number;
  readonly machineUs: number;
  /** The limit beside it. */
  readonly verificationsPerSecond: number;
}

/** Looks at the limit, and the server's CPU time meanwhile. */
interface Looks {
  readonly looks: readonly number[];
  readonly betweenUs: number;
}

/** `commits` of the server while the parts were sent. */
export function runReport(
  what: Pick<RunReport, 'transport' | 'ledgers'>,
  parts: readonly MeasuredPart[],
  { looks, betweenUs }: Looks,
  commits: CommitTotals,
): RunReport {
  const latencies = new LatencyHistogram();
  for (const { load } of parts) latencies.add(load.latencyCounts);
  const [accepted, refused] = [sumOf(parts, ({ load }) => load.accepted), sumOf(parts, ({ load }) => load.refused)];
  const events = accepted + refused;
  const steady = parts.map(({ load }) => load.steady);
  const seconds = sumOf(steady, (part) => part.seconds);
  const [serverUs, loadUs] = [sumOf(parts, (part) => part.serverUs), sumOf(parts, ({ load }) => load.cpuUs)];
  const othersUs = sumOf(parts, ({ machineUs }) => machineUs) - serverUs - loadUs;
  const verifiable = sumOf(parts, ({ load, verificationsPerSecond }) => verificationsPerSecond * load.steady.seconds);
  return {
    ...{ ...what, events, accepted, refused },
    perSecond: Math.round(sumOf(steady, (part) => part.accepted) / seconds),
    perSecondWhole: Math.round(accepted / sumOf(parts, ({ load }) => load.seconds)),
    p50Ms: rounded(latencies.percentileMs(0.5)),
    p99Ms: rounded(latencies.percentileMs(0.99)),
    cpuUsPerEvent: {
      server: rounded(serverUs / events),
      serverMainThread: rounded(sumOf(parts, (part) => part.serverMainUs) / events),
      loadGenerator: rounded(loadUs / events),
      serverBetweenParts: rounded(betweenUs / events),
    },
    coresOfOthers: rounded(othersUs / (sumOf(parts, ({ wholeSeconds }) => wholeSeconds) * 1e6)),
    eventsPerCommit: rounded(commits.events / commits.commits),
    commitMs: rounded((commits.seconds / commits.commits) * 1_000),
    verificationsPerSecond: Math.round(verifiable / seconds),
    verificationsMeasured: looks.map(Math.round),
  };
}
