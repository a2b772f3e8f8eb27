import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BareLoopReport, type BareLoopResult, bareLoopReport, runBareLoop } from './cluster-bare-loop.ts';
import { measureHop } from './cluster-hop.ts';
import { type JitReport, untilCompiled } from './cluster-jit.ts';
import { type BenchCluster, startBenchCluster } from './cluster-processes.ts';
import {
  asPreparedRun,
  measureClusterRun,
  type PreparedClusterRun,
  prepareClusterRun,
  warmUpCluster,
} from './cluster-run.ts';
import type { ClusterRunReport } from './cluster-run-report.ts';
import type { BenchOptions } from './options.ts';
import { payloadBytes } from './payload.ts';
import { verificationLimit } from './raw-limits.ts';
import { keyCount, makeSetting, type Setting } from './setting.ts';
import { meanOf, rounded } from './sum.ts';
import { type VerificationReport, verifyRuns } from './verify-runs.ts';

/** Appends a second, of what a bare loop sends; it neither verifies, nor forwards, nor serves clients. */
const ofBareLoopMin = 0.25;
/** Cassandra's CPU an append, as a multiple of what the conditional rows alone cost it. */
const ofRowsAloneMax = 2;
/** CPU of the nodes an append, in Ed25519 verifications. */
const verificationsMax = 3.5;

const loopNames = ['rowsAlonePaced', 'bareLoop', 'rowsAlone'] as const;
type LoopName = (typeof loopNames)[number];

/** A run with the bare loops that it is compared with, alternating with it part by part. */
interface ComparedRun {
  readonly cassandraJit: JitReport;
  readonly run: ClusterRunReport;
  /** At verifications a second on all cores, while nothing else has anything to do. */
  readonly quietLooks: readonly number[];
  readonly bareLoop: BareLoopReport;
  readonly rowsAlone: BareLoopReport;
  /** At the pace of the run: Cassandra's idle threads spin for as long then. */
  readonly rowsAlonePaced: BareLoopReport;
}

/** `npm run bench -- --cluster`: three nodes on one Cassandra, as docs/performance.md describes. */
export async function benchCluster(options: BenchOptions, progress: (line: string) => void): Promise<object> {
  const workDir = mkdtempSync(join(tmpdir(), 'ledger-bench-cluster-'));
  try {
    progress('starting Redis, Cassandra and three nodes');
    await using cluster = await startBenchCluster(join(workDir, 'cluster'), options.profileDir);
    const prepared: PreparedClusterRun[] = [];
    const compared: ComparedRun[] = [];
    for (const ledgers of options.ledgerCounts) {
      progress(`${ledgers} ledger(s): signing ${options.events} events`);
      const setting = await makeSetting(cluster.nodes[0]?.base ?? '', ledgers);
      const one = await prepareClusterRun(cluster, setting, options.events, workDir);
      progress(`${ledgers} ledger(s): warming up`);
      const cassandraJit = await untilCompiled(cluster, setting, await warmUpCluster(cluster, one));
      progress(`${ledgers} ledger(s): sending, alternating with bare loops of the same batches`);
      const { report: run, beside } = await measureClusterRun(cluster, one, (part, at) =>
        measureBeside(cluster, setting, part, at),
      );
      progress(JSON.stringify(run));
      prepared.push(one);
      const loops = beside.flatMap((part) => part.loops);
      const reportOf = (name: LoopName) =>
        bareLoopReport(loops.filter((loop) => loop.name === name).map(({ result }) => result));
      compared.push({
        cassandraJit,
        run,
        quietLooks: beside.map(({ quietLook }) => quietLook),
        bareLoop: reportOf('bareLoop'),
        rowsAlone: reportOf('rowsAlone'),
        rowsAlonePaced: reportOf('rowsAlonePaced'),
      });
    }
    progress('the hop to the owner');
    const forwardingHop = await measureHop(cluster);
    if (options.verified) progress('reading everything back');
    const verification = options.verified ? await verifyAll(cluster, prepared) : null;
    return {
      machine: { node: process.version, cores: cpus().length, cpu: cpus()[0]?.model ?? '' },
      ...{ nodes: cluster.nodes.length, events: options.events, payloadBytes, keys: keyCount },
      runs: compared.map(withTargets),
      forwardingHop,
      verification,
    };
  } finally {
    rmSync(workDir, { recursive: true, force: true });
  }
}

/** The comparison for a part of a run. The loops rotate, since one leaves work in Cassandra for the next. */
async function measureBeside(cluster: BenchCluster, setting: Setting, part: ClusterRunReport, at: number) {
  const quietLook = await verificationLimit();
  const loops: { readonly name: LoopName; readonly result: BareLoopResult }[] = [];
  for (const name of [...loopNames.slice(at % loopNames.length), ...loopNames.slice(0, at % loopNames.length)]) {
    const batchesPerSecond = name === 'rowsAlonePaced' ? part.commitsPerSecond : null;
    const what = { withProjections: name === 'bareLoop', batchesPerSecond };
    loops.push({ name, result: await runBareLoop(cluster, setting, part, what) });
  }
  return { quietLook, loops };
}

function withTargets({ cassandraJit, run, quietLooks, bareLoop, rowsAlone, rowsAlonePaced }: ComparedRun): object {
  const ofBareLoop = run.perSecond / bareLoop.perSecond;
  const ofRows = (rows: BareLoopReport) => run.cpuUsPerEvent.cassandra / rows.cpuUsPerEvent.cassandra;
  const ofRowsAlonePaced = ofRows(rowsAlonePaced);
  const inVerifications = run.cpuUsPerEvent.nodes / run.verificationCpuUs;
  return {
    ...run,
    cassandraJit,
    bareLoop,
    rowsAlone,
    rowsAlonePaced,
    throughput: { ofBareLoop: rounded(ofBareLoop), targetMin: ofBareLoopMin, reached: ofBareLoop >= ofBareLoopMin },
    cassandraCpu: {
      ...{ ofRowsAlonePaced: rounded(ofRowsAlonePaced), ofRowsAlone: rounded(ofRows(rowsAlone)) },
      ...{ targetMax: ofRowsAloneMax, reached: ofRowsAlonePaced <= ofRowsAloneMax },
    },
    nodesCpu: {
      verificationsPerAppend: rounded(inVerifications),
      inQuietVerifications: rounded((run.cpuUsPerEvent.nodes * meanOf(quietLooks)) / (cpus().length * 1e6)),
      targetMax: verificationsMax,
      reached: inVerifications <= verificationsMax,
    },
  };
}

/** Reads everything back through one of the nodes: any of them sees what was answered by any. */
function verifyAll({ nodes }: BenchCluster, runs: readonly PreparedClusterRun[]): Promise<VerificationReport> {
  const [node] = nodes;
  if (node === undefined) throw new Error('there are no nodes');
  const { port: httpPort, grpcPort, internalPort: opsPort } = node.at;
  const server = { pid: node.process.pid, baseUrl: node.base, httpPort, grpcPort, opsPort, stop: async () => {} };
  return verifyRuns(server, runs.map(asPreparedRun));
}
