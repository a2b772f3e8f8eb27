import { rmSync } from 'node:fs';
import { runProcess } from './child.ts';
import {
  type CommitTotals,
  commitTotals,
  type GroupSize,
  groupSizes,
  sumOfTotals,
  totalsBetween,
  troubleOf,
} from './cluster-commits.ts';
import type { ClusterLoadResult } from './cluster-load-process.ts';
import type { BenchCluster } from './cluster-processes.ts';
import { type NodeRequests, signForNodes } from './cluster-requests.ts';
import { LatencyHistogram } from './latency.ts';
import type { LoadJob } from './load-job.ts';
import { type PreparedRun, rounded } from './run.ts';
import { cpuTime, machineCpuUs } from './server-process.ts';
import { keyCount, type Setting } from './setting.ts';
import { wrongEvery } from './signing.ts';

/** Events sent before time is taken: Cassandra and the nodes compile for a minute, at the cost of whatever is measured meanwhile. */
const warmUpEvents = 48_000;
/** With few events open in the beginning: cold, a cluster is far slower. */
const coldEvents = 8_000;
/** Events of each of the 16 streams that wait at a time then. */
const inFlightCold = 16;
/** And while it is measured: some twenty a ledger, or a dozen full commits of the hot one. With twice as many a cluster is slower. */
const inFlightOf = (ledgers: number): number => (ledgers === 1 ? 48 : 128);

/** In which a run is sent. */
const partsOfRun = 3;

/** A run whose requests are signed and in files. */
export interface PreparedClusterRun {
  readonly setting: Setting;
  readonly nodes: readonly NodeRequests[];
  /** Records of each stream, and how many of them warm the cluster up. */
  readonly laneRecords: number;
  readonly warmUp: number;
}

/** A run as it was measured: per event, counting all that were sent. */
export interface ClusterRunReport {
  readonly ledgers: number;
  readonly events: number;
  readonly accepted: number;
  readonly refused: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly eventsPerCommit: number;
  readonly commitsPerSecond: number;
  readonly commitMs: number;
  readonly groupSizes: readonly GroupSize[];
  /** Share of the events that came to another node than the owner's. */
  readonly forwarded: number;
  readonly cpuUsPerEvent: {
    readonly nodes: number;
    readonly nodesMainThreads: number;
    readonly cassandra: number;
    readonly loadGenerator: number;
  };
  /** CPU time of an Ed25519 verification of Node, in µs, measured meanwhile. */
  readonly verificationCpuUs: number;
  /** Cores that nothing of this run used: above a tenth or so, something else ran on the machine. */
  readonly coresOfOthers: number;
  readonly seconds: number;
}

export async function prepareClusterRun(
  cluster: BenchCluster,
  setting: Setting,
  events: number,
  workDir: string,
): Promise<PreparedClusterRun> {
  const warmUp = Math.ceil(warmUpEvents / keyCount);
  const laneRecords = warmUp + Math.ceil(events / keyCount);
  const nodes = await signForNodes(setting, laneRecords, cluster.nodes.length, workDir);
  return { setting, nodes, laneRecords, warmUp };
}

/** Sends the part of a prepared run that time is not taken of. */
export async function warmUpCluster(cluster: BenchCluster, run: PreparedClusterRun): Promise<void> {
  const cold = Math.ceil(coldEvents / keyCount);
  await load(cluster, run, { from: 0, to: cold, inFlight: inFlightCold });
  await load(cluster, run, { from: cold, to: run.warmUp, inFlight: inFlightOf(run.setting.ledgers.length) });
}

/** A part of a run as it was measured. */
interface ClusterPart {
  readonly load: ClusterLoadResult;
  readonly commits: CommitTotals;
  /** CPU time of each, in µs, while it was sent. */
  readonly nodesUs: number;
  readonly nodesMainUs: number;
  readonly cassandraUs: number;
  readonly machineUs: number;
}

/**
 * Sends the rest to all nodes at once, in parts, and has `beside` measure after each what it is compared with: a shared host changes its
 * pace within minutes. Throws where anything but the wrongly signed events was refused.
 */
export async function measureClusterRun(
  cluster: BenchCluster,
  run: PreparedClusterRun,
  beside: (part: ClusterRunReport) => Promise<void>,
): Promise<ClusterRunReport> {
  const { warmUp, laneRecords } = run;
  const measured: ClusterPart[] = [];
  const startOf = (part: number): number => warmUp + Math.floor(((laneRecords - warmUp) * part) / partsOfRun);
  for (let part = 0; part < partsOfRun; part++) {
    const one = await measurePart(cluster, run, startOf(part), startOf(part + 1));
    measured.push(one);
    await beside(clusterRunReport(run, [one]));
  }
  for (const { file } of run.nodes) rmSync(file.path);
  return clusterRunReport(run, measured);
}

async function measurePart(
  cluster: BenchCluster,
  run: PreparedClusterRun,
  from: number,
  to: number,
): Promise<ClusterPart> {
  const before = await look(cluster);
  const result = await load(cluster, run, { from, to, inFlight: inFlightOf(run.setting.ledgers.length) });
  const after = await look(cluster);
  return {
    load: result,
    commits: totalsBetween(before.commits, after.commits),
    nodesUs: after.nodesUs - before.nodesUs,
    nodesMainUs: after.nodesMainUs - before.nodesMainUs,
    cassandraUs: after.cassandraUs - before.cassandraUs,
    machineUs: after.machineUs - before.machineUs,
  };
}

function clusterRunReport(run: PreparedClusterRun, parts: readonly ClusterPart[]): ClusterRunReport {
  const sum = (of: (part: ClusterPart) => number): number => parts.reduce((total, part) => total + of(part), 0);
  const commits = sumOfTotals(parts.map((part) => part.commits));
  const [accepted, refused] = [sum(({ load }) => sumOf(load, 'accepted')), sum(({ load }) => sumOf(load, 'refused'))];
  const [seconds, loadUs] = [sum(({ load }) => load.seconds), sum(({ load }) => load.cpuUs)];
  const [nodesUs, cassandraUs] = [sum((part) => part.nodesUs), sum((part) => part.cassandraUs)];
  const verifyingUs = sum(({ load }) => load.verifications.cpuUs);
  const othersUs = sum((part) => part.machineUs) - nodesUs - cassandraUs - loadUs - verifyingUs;
  const events = accepted + refused;
  const latencies = new LatencyHistogram();
  for (const { load } of parts) for (const { latencyCounts } of load.nodes) latencies.add(latencyCounts);
  return {
    ledgers: run.setting.ledgers.length,
    ...{ events, accepted, refused },
    perSecond: Math.round(accepted / seconds),
    p50Ms: rounded(latencies.percentileMs(0.5)),
    p99Ms: rounded(latencies.percentileMs(0.99)),
    eventsPerCommit: rounded(commits.events / commits.commits),
    commitsPerSecond: rounded(commits.commits / seconds),
    commitMs: rounded((commits.seconds / commits.commits) * 1_000),
    groupSizes: groupSizes(commits),
    forwarded: rounded(commits.forwarded / accepted),
    cpuUsPerEvent: {
      nodes: rounded(nodesUs / events),
      nodesMainThreads: rounded(sum((part) => part.nodesMainUs) / events),
      cassandra: rounded(cassandraUs / events),
      loadGenerator: rounded(loadUs / events),
    },
    verificationCpuUs: rounded(verifyingUs / sum(({ load }) => load.verifications.count)),
    coresOfOthers: rounded(othersUs / (seconds * 1e6)),
    seconds: rounded(seconds),
  };
}

/** The run as the verification of a single node's runs takes it. */
export function asPreparedRun({ setting, nodes, laneRecords, warmUp }: PreparedClusterRun): PreparedRun {
  const [first] = nodes;
  if (first === undefined) throw new Error('there are no nodes');
  return { door: 'stream', setting, file: { ...first.file, lanes: keyCount, laneRecords }, warmUp };
}

async function load(
  cluster: BenchCluster,
  { setting, nodes }: PreparedClusterRun,
  part: Pick<LoadJob, 'from' | 'to' | 'inFlight'>,
): Promise<ClusterLoadResult> {
  const jobs = nodes.map(({ file, keys }, at): LoadJob => {
    const apiKeys = keys.map((key) => setting.keys[key]?.apiKey ?? '');
    const port = cluster.nodes[at]?.at.grpcPort ?? 0;
    return { door: 'stream', port, file, apiKeys, ...part };
  });
  const result = await runProcess<LoadJob[], ClusterLoadResult>('cluster-load-process.ts', jobs);
  const wrong = Math.floor((part.to * keyCount) / wrongEvery) - Math.floor((part.from * keyCount) / wrongEvery);
  const [refused, failed] = [sumOf(result, 'refused'), sumOf(result, 'failed')];
  if (failed > 0 || refused !== wrong) {
    const first = result.nodes.find(({ firstFailure }) => firstFailure !== null)?.firstFailure;
    const trouble = await troubleOf(cluster.nodes.map(({ internalBase }) => internalBase));
    throw new Error(
      `${refused} refused of ${wrong} wrong ones, ${failed} failed in ${rounded(result.seconds)} s: ${first}; ${JSON.stringify(trouble)}`,
    );
  }
  return result;
}

function sumOf({ nodes }: ClusterLoadResult, name: 'accepted' | 'refused' | 'failed'): number {
  return nodes.reduce((sum, node) => sum + node[name], 0);
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
    nodesUs: times.reduce((sum, { allUs }) => sum + allUs, 0),
    nodesMainUs: times.reduce((sum, { mainUs }) => sum + mainUs, 0),
    cassandraUs: cpuTime(cassandraPid).allUs,
    machineUs: machineCpuUs(),
  };
}
