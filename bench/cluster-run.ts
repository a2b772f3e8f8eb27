import { rmSync } from 'node:fs';
import { type CommitTotals, commitTotals, totalsBetween, troubleOf } from './cluster-commits.ts';
import type { ClusterLoadResult } from './cluster-load-process.ts';
import type { BenchCluster } from './cluster-processes.ts';
import { type ClusterPart, type ClusterRunReport, clusterRunReport } from './cluster-run-report.ts';
import { runForked } from './forked.ts';
import type { LoadJob } from './load-job.ts';
import { partsOf } from './load-report.ts';
import { verificationLimit } from './raw-limits.ts';
import type { PreparedRun } from './run.ts';
import { cpuTime, machineCpuUs } from './server-process.ts';
import { keyCount, type Setting } from './setting.ts';
import { type NodeRequests, signForNodes } from './signed-requests.ts';
import { wrongIn } from './signing.ts';
import { rounded, sumOf } from './sum.ts';

/**
 * Events sent before time is taken, 48,000 for each node: behind a third of them V8 was still compiling, for a tenth of
 * the nodes' CPU. Cassandra's JIT needs some minutes more.
 */
const warmUpEvents = 144_000;
/** With few events open in the beginning: cold, a cluster is far slower. */
const coldEvents = 8_000;
/** Events of each of the 16 streams that wait at a time then. */
const inFlightCold = 16;
/** And during the measurement: some twenty for each ledger, or a dozen full commits of the hot one. */
const inFlightOf = (ledgers: number): number => (ledgers === 1 ? 48 : 128);

/** In so many parts a run is sent. */
const partsOfRun = 3;

/** What is sent at a time. */
type LoadPart = Pick<LoadJob, 'from' | 'to' | 'inFlight'>;

/** A run whose requests are signed and in files. */
export interface PreparedClusterRun {
  readonly setting: Setting;
  readonly nodes: readonly NodeRequests[];
  /** Records of each stream, and how many of them warm the cluster up. */
  readonly recordsPerSigner: number;
  readonly warmUp: number;
}

export async function prepareClusterRun(
  cluster: BenchCluster,
  setting: Setting,
  events: number,
  workDir: string,
): Promise<PreparedClusterRun> {
  const warmUp = Math.ceil(warmUpEvents / keyCount);
  const recordsPerSigner = warmUp + Math.ceil(events / keyCount);
  const requests = { setting, transport: 'stream', run: `cluster-${setting.ledgers.length}` } as const;
  const nodes = await signForNodes(requests, recordsPerSigner, cluster.nodes.length, workDir);
  return { setting, nodes, recordsPerSigner, warmUp };
}

/**
 * Sends a prepared run to all nodes at once: what does not count, and the rest in parts, with a look at what a
 * verification takes behind each. Throws where anything but the wrongly signed events was refused.
 */
export async function measureClusterRun(cluster: BenchCluster, run: PreparedClusterRun): Promise<ClusterRunReport> {
  const { setting, nodes, warmUp, recordsPerSigner } = run;
  const cold = Math.ceil(coldEvents / keyCount);
  const inFlight = inFlightOf(setting.ledgers.length);
  await load(cluster, run, { from: 0, to: cold, inFlight: inFlightCold });
  await load(cluster, run, { from: cold, to: warmUp, inFlight });
  const parts: ClusterPart[] = [];
  for (const records of partsOf({ from: warmUp, to: recordsPerSigner }, partsOfRun))
    parts.push(await measurePart(cluster, run, { ...records, inFlight }));
  for (const { file } of nodes) rmSync(file.path);
  return clusterRunReport(setting.ledgers.length, parts);
}

async function measurePart(cluster: BenchCluster, run: PreparedClusterRun, part: LoadPart): Promise<ClusterPart> {
  const [startedMs, before] = [performance.now(), await look(cluster)];
  const result = await load(cluster, run, part);
  const [after, wholeSeconds] = [await look(cluster), (performance.now() - startedMs) / 1_000];
  return {
    load: result,
    wholeSeconds,
    commits: totalsBetween(before.commits, after.commits),
    nodesUs: after.nodesUs - before.nodesUs,
    nodesMainUs: after.nodesMainUs - before.nodesMainUs,
    cassandraUs: after.cassandraUs - before.cassandraUs,
    machineUs: after.machineUs - before.machineUs,
    verificationCpuUs: (await verificationLimit()).cpuUs,
  };
}

/** The run as the verification of a single node's runs takes it. */
export function asPreparedRun({ setting, nodes, recordsPerSigner, warmUp }: PreparedClusterRun): PreparedRun {
  const [first] = nodes;
  if (first === undefined) throw new Error('there are no nodes');
  return { transport: 'stream', setting, file: { ...first.file, signers: keyCount, recordsPerSigner }, warmUp };
}

async function load(
  cluster: BenchCluster,
  { setting, nodes }: PreparedClusterRun,
  part: LoadPart,
): Promise<ClusterLoadResult> {
  const jobs = nodes.map(({ file, keys }, at): LoadJob => {
    const apiKeys = keys.map((key) => setting.keys[key]?.apiKey ?? '');
    const port = cluster.nodes[at]?.at.grpcPort ?? 0;
    return { transport: 'stream', port, file, apiKeys, ...part };
  });
  const result = await runForked<LoadJob[], ClusterLoadResult>('cluster-load-process.ts', jobs);
  const wrong = wrongIn(part.from, part.to, keyCount);
  const [refused, failed] = [sumOf(result.nodes, (node) => node.refused), sumOf(result.nodes, (node) => node.failed)];
  if (failed > 0 || refused !== wrong) {
    const first = result.nodes.find(({ firstFailure }) => firstFailure !== null)?.firstFailure;
    const trouble = await troubleOf(cluster.nodes.map(({ internalBase }) => internalBase));
    throw new Error(
      `${refused} refused of ${wrong} wrong ones, ${failed} failed in ${rounded(result.seconds)} s: ${first}; ${JSON.stringify(trouble)}`,
    );
  }
  return result;
}

/** What all processes have done by now. */
interface Look {
  readonly commits: CommitTotals;
  readonly nodesUs: number;
  readonly nodesMainUs: number;
  readonly cassandraUs: number;
  readonly machineUs: number;
}

async function look({ nodes, cassandraPid }: BenchCluster): Promise<Look> {
  const commits = await commitTotals(nodes.map(({ internalBase }) => internalBase));
  const times = nodes.map(({ process }) => cpuTime(process.pid));
  return {
    commits,
    nodesUs: sumOf(times, ({ allUs }) => allUs),
    nodesMainUs: sumOf(times, ({ mainUs }) => mainUs),
    cassandraUs: cpuTime(cassandraPid).allUs,
    machineUs: machineCpuUs(),
  };
}
