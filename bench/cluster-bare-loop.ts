import { runProcess } from './child.ts';
import type { GroupSize } from './cluster-commits.ts';
import type { BenchCluster } from './cluster-processes.ts';
import type { ClusterRunReport } from './cluster-run-report.ts';
import type { Setting } from './setting.ts';
import { rounded, sumOf } from './sum.ts';

/** What a bare loop over the driver is to send. Plain data: it goes to that process as JSON. */
export interface BareLoopJob {
  /** Variables of cassandraSettings. */
  readonly env: { readonly [name: string]: string | undefined };
  readonly cassandraPid: number;
  /** A ledger whose rows are sent again, as those of other ledgers. */
  readonly sampleLedgerId: string;
  /** Made-up ledgers, each with one batch in flight, as the service has it. */
  readonly ledgers: number;
  readonly mastersOfLedger: number;
  readonly groupSizes: readonly GroupSize[];
  /** Without them the conditional rows alone are written. */
  readonly withProjections: boolean;
  /** Of all ledgers together; null: as many as come through. */
  readonly batchesPerSecond: number | null;
  readonly seconds: number;
}

export interface BareLoopResult {
  readonly events: number;
  readonly batches: number;
  readonly batchMs: number;
  readonly seconds: number;
  /** CPU time in µs while it was measured. */
  readonly loopUs: number;
  readonly cassandraUs: number;
}

export interface BareLoopReport {
  readonly perSecond: number;
  readonly eventsPerBatch: number;
  readonly batchMs: number;
  readonly cpuUsPerEvent: { readonly loop: number; readonly cassandra: number };
}

/**
 * Sends Cassandra what the service sent it for the events of a run, in groups of the same sizes on as many ledgers and
 * for as long, with nothing around it: no signatures, no actors, no callers, one process.
 */
export function runBareLoop(
  cluster: BenchCluster,
  setting: Setting,
  { groupSizes, seconds }: Pick<ClusterRunReport, 'groupSizes' | 'seconds'>,
  what: Pick<BareLoopJob, 'withProjections' | 'batchesPerSecond'>,
): Promise<BareLoopResult> {
  const [sample] = setting.ledgers;
  if (sample === undefined) throw new Error('there is no ledger');
  return runProcess<BareLoopJob, BareLoopResult>('cluster-bare-process.ts', {
    env: cluster.env,
    cassandraPid: cluster.cassandraPid,
    sampleLedgerId: sample.ledgerId,
    ledgers: setting.ledgers.length,
    mastersOfLedger: sample.masters.length,
    groupSizes,
    ...what,
    seconds,
  });
}

/** Of the loops of a run, one for each of its parts. */
export function bareLoopReport(loops: readonly BareLoopResult[]): BareLoopReport {
  const [events, batches] = [sumOf(loops, (loop) => loop.events), sumOf(loops, (loop) => loop.batches)];
  return {
    perSecond: Math.round(events / sumOf(loops, ({ seconds }) => seconds)),
    eventsPerBatch: rounded(events / batches),
    batchMs: rounded(sumOf(loops, (loop) => loop.batchMs * loop.batches) / batches),
    cpuUsPerEvent: {
      loop: rounded(sumOf(loops, ({ loopUs }) => loopUs) / events),
      cassandra: rounded(sumOf(loops, ({ cassandraUs }) => cassandraUs) / events),
    },
  };
}
