import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { measureHop } from './cluster-hop.ts';
import { type BenchCluster, startBenchCluster } from './cluster-processes.ts';
import { asPreparedRun, measureClusterRun, type PreparedClusterRun, prepareClusterRun } from './cluster-run.ts';
import type { ClusterRunReport } from './cluster-run-report.ts';
import type { BenchOptions } from './options.ts';
import { payloadBytes } from './payload.ts';
import { keyCount, makeSetting } from './setting.ts';
import { rounded } from './sum.ts';
import { type VerificationReport, verifyRuns } from './verify-runs.ts';

/** CPU of the nodes an append, in Ed25519 verifications on idle cores (docs/adr/0061). */
const verificationsMax = 4.7;

/** `npm run bench -- --cluster`: three nodes on one Cassandra, as docs/performance.md describes. */
export async function benchCluster(options: BenchOptions, progress: (line: string) => void): Promise<object> {
  const workDir = mkdtempSync(join(tmpdir(), 'ledger-bench-cluster-'));
  try {
    progress('starting Redis, Cassandra and three nodes');
    await using cluster = await startBenchCluster(join(workDir, 'cluster'), options.profileDir);
    const runs: PreparedClusterRun[] = [];
    const reports: ClusterRunReport[] = [];
    for (const ledgers of options.ledgerCounts) {
      progress(`${ledgers} ledger(s): signing ${options.events} events`);
      const setting = await makeSetting(cluster.nodes[0]?.base ?? '', ledgers);
      const run = await prepareClusterRun(cluster, setting, options.events, workDir);
      progress(`${ledgers} ledger(s): sending`);
      const report = await measureClusterRun(cluster, run);
      progress(JSON.stringify(withTarget(report)));
      runs.push(run);
      reports.push(report);
    }
    progress('the hop to the owner');
    const forwardingHop = await measureHop(cluster);
    if (options.verified) progress('reading everything back');
    const verification = options.verified ? await verifyAll(cluster, runs) : null;
    return {
      machine: { node: process.version, cores: cpus().length, cpu: cpus()[0]?.model ?? '' },
      ...{ nodes: cluster.nodes.length, events: options.events, payloadBytes, keys: keyCount },
      runs: reports.map(withTarget),
      forwardingHop,
      verification,
    };
  } finally {
    rmSync(workDir, { recursive: true, force: true });
  }
}

function withTarget(report: ClusterRunReport): object {
  const ratio = report.cpuUsPerEvent.nodes / report.verificationCpuUs;
  const reached = ratio <= verificationsMax;
  return { ...report, nodesCpu: { verificationsPerAppend: rounded(ratio), targetMax: verificationsMax, reached } };
}

/** Reads everything back through one of the nodes: any of them sees what was answered by any. */
function verifyAll({ nodes }: BenchCluster, runs: readonly PreparedClusterRun[]): Promise<VerificationReport> {
  const [node] = nodes;
  if (node === undefined) throw new Error('there are no nodes');
  const { port: httpPort, grpcPort, internalPort: opsPort } = node.at;
  const server = { pid: node.process.pid, baseUrl: node.base, httpPort, grpcPort, opsPort, stop: async () => {} };
  return verifyRuns(server, runs.map(asPreparedRun));
}
