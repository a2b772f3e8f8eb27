import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import cassandra from 'cassandra-driver';
import { StartError } from '../../src/runtime/start-error.ts';
import { type ClassArchive, classArchive } from './cassandra-archive.ts';
import { type CassandraNodePlan, evenTokens, writeCassandraFiles } from './cassandra-files.ts';
import { cassandraClasspath } from './cassandra-jars.ts';
import { type ServerProcess, startServerProcess } from './child-process.ts';
import { accepts, afterMs, freePorts } from './ports.ts';
import { notFoundExitCode, withTimerSlack } from './timer-slack.ts';

const startMaxMs = 120_000;
const pollMs = 100;
/**
 * Cassandra's idle workers sleep for 10 µs between looks for work. With Linux's default slack of 50 µs they wake up
 * some 60,000 times a second (docs/adr/0027-required-cassandra-settings.md).
 */
const timerSlackNs = 500_000;

interface LocalCassandraOptions {
  /** The number of nodes, on 127.0.0.1, 127.0.0.2, … */
  readonly nodes: 1 | 3;
  /** The directory of the nodes' data, logs and configuration. Existing data is used again. */
  readonly dir: string;
  /** The CQL port. Default: any free one. */
  readonly port?: number;
  /** Uses the whole JIT, for measurements. Without it a node starts in half the time. */
  readonly fullJit?: boolean;
  readonly heapMb?: number;
  /** The data is never used again, so that schema changes need not be flushed and take a fifth of the time. */
  readonly isThrownAway?: boolean;
  /** Cassandra's timeout of a write, ms. Default: Cassandra's own, 2 s. */
  readonly writeMaxMs?: number;
  readonly signal?: AbortSignal;
}

interface LocalCassandraNode {
  readonly address: string;
  readonly process: ServerProcess;
}

/** A Cassandra cluster as child processes on the loopback. Disposing it stops them. */
export interface LocalCassandra extends AsyncDisposable {
  /** `host:port` of every node. */
  readonly contactPoints: readonly string[];
  /** The port at which its nodes talk to each other. */
  readonly storagePort: number;
  readonly localDataCenter: string;
  readonly nodes: readonly LocalCassandraNode[];
  /** Stops a node if it still runs, and starts it again with its data. */
  restart(index: number): Promise<void>;
}

/**
 * Starts Cassandra from its own jars, all nodes at once, and waits until they serve CQL and agree on the schema. Throws
 * if Java or Maven is missing, or if a node does not start.
 */
export async function startCassandra(options: LocalCassandraOptions): Promise<LocalCassandra> {
  const classpath = await cassandraClasspath();
  const archive = await classArchive(classpath);
  const [port = 0] = options.port === undefined ? await freePorts(1) : [options.port];
  const storagePort = await storagePortOf(options.dir);
  const addresses = Array.from({ length: options.nodes }, (_, index) => `127.0.0.${index + 1}`);
  const tokens = evenTokens(options.nodes);
  const start = async (address: string, index: number): Promise<LocalCassandraNode> => {
    const dir = join(options.dir, `node-${index + 1}`);
    const token = tokens[index] ?? '0';
    const { writeMaxMs } = options;
    const plan: CassandraNodePlan = { address, port, storagePort, seeds: addresses, token, dir, writeMaxMs };
    return { address, process: await startNode(plan, classpath, archive, options) };
  };
  const nodes = await Promise.all(addresses.map(start));
  const stop = async () => void (await Promise.all(nodes.map(({ process }) => process.stop())));
  try {
    await Promise.all(nodes.map((node) => untilServing(node, port, options)));
    await untilAgreed(addresses, port, options.signal);
    const [first, ...others] = nodes;
    // Only with a single node: others would believe that this one is dead while it writes the archive.
    if (first !== undefined && others.length === 0) {
      await archive.keep(first.process.pid);
      // Java exits if the disk is too full for the archive.
      await untilServing(first, port, options);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    contactPoints: addresses.map((address) => `${address}:${port}`),
    storagePort,
    localDataCenter: 'datacenter1',
    nodes,
    async restart(index) {
      const old = nodes[index];
      if (old === undefined) throw new RangeError(`There is no node ${index}`);
      await old.process.stop();
      nodes[index] = await start(old.address, index);
      await untilServing(nodes[index], port, options);
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** Nodes know each other by address and storage port, so existing data must be used with the same port as before. */
async function storagePortOf(dir: string): Promise<number> {
  const file = join(dir, 'storage-port');
  if (existsSync(file)) return Number(await readFile(file, 'utf8'));
  const [free = 0] = await freePorts(1);
  await mkdir(dir, { recursive: true });
  await writeFile(file, String(free));
  return free;
}

async function startNode(
  plan: CassandraNodePlan,
  classpath: string,
  archive: ClassArchive,
  options: LocalCassandraOptions,
): Promise<ServerProcess> {
  const { yaml, logback } = await writeCassandraFiles(plan);
  const heapMb = options.heapMb ?? (options.nodes === 1 ? 1024 : 512);
  const opened = ['java.base/sun.nio.ch', 'java.base/jdk.internal.ref', 'java.base/java.io'];
  const args = [
    `-Xms${heapMb}m`,
    `-Xmx${heapMb}m`,
    ...(options.fullJit === true ? [] : ['-XX:TieredStopAtLevel=1']),
    ...archive.args,
    '-XX:+UseG1GC',
    // With the default regions of 1 MB, a process with a heap of this size dies silently under load.
    '-XX:G1HeapRegionSize=4m',
    '-XX:+ExitOnOutOfMemoryError',
    ...opened.flatMap((name) => ['--add-opens', `${name}=ALL-UNNAMED`]),
    `-Dcassandra.config=file://${yaml}`,
    `-Dlogback.configurationFile=${logback}`,
    `-Dcassandra.storagedir=${plan.dir}`,
    '-Dcassandra.skip_wait_for_gossip_to_settle=0',
    '-Dcassandra.ring_delay_ms=0',
    // A failed pull of the schema, as when all nodes start on a busy machine, is retried after a minute by default.
    '-Dcassandra.schema_pull_interval_ms=3000',
    '-Dcassandra.shutdown_announce_in_ms=0',
    // By default every schema change is flushed to tables, each synced to disk.
    ...(options.isThrownAway === true ? ['-Dcassandra.test.flush_local_schema_changes=false'] : []),
    '-Djava.net.preferIPv4Stack=true',
    '-cp',
    classpath,
    'org.apache.cassandra.service.CassandraDaemon',
  ];
  return startServerProcess(...withTimerSlack(timerSlackNs, 'java', args), join(plan.dir, 'stdout.log'));
}

async function untilServing(
  node: LocalCassandraNode,
  port: number,
  { dir, signal }: LocalCassandraOptions,
): Promise<void> {
  const began = performance.now();
  while (!(await accepts(node.address, port))) {
    signal?.throwIfAborted();
    if (node.process.hasEnded() && (await node.process.ended) === notFoundExitCode)
      throw new StartError('java cannot be started: install a JDK and have it on the PATH.');
    const late = performance.now() - began > startMaxMs;
    if (node.process.hasEnded() || late) {
      const what = node.process.hasEnded()
        ? `ended with ${(await node.process.ended) ?? 'a signal'}`
        : `took ${startMaxMs / 1_000} s`;
      const said = await node.process.lastLine();
      throw new Error(`Cassandra on ${node.address} ${what}, before it served: ${said} (logs: below ${dir})`);
    }
    await afterMs(pollMs);
  }
}

/** Waits until every node knows all others and all have the same schema version. */
async function untilAgreed(addresses: readonly string[], port: number, signal?: AbortSignal): Promise<void> {
  const client = new cassandra.Client({
    contactPoints: addresses.map((address) => `${address}:${port}`),
    localDataCenter: 'datacenter1',
  });
  try {
    await client.connect();
    const began = performance.now();
    for (;;) {
      signal?.throwIfAborted();
      const local = await client.execute('SELECT schema_version FROM system.local');
      const peers = await client.execute('SELECT schema_version FROM system.peers_v2');
      const versions = [...local.rows, ...peers.rows].map((row) => String(row.schema_version));
      if (versions.length === addresses.length && new Set(versions).size === 1) return;
      if (performance.now() - began > startMaxMs) throw new Error('The nodes of Cassandra do not agree on a schema');
      await afterMs(pollMs);
    }
  } finally {
    await client.shutdown();
  }
}
