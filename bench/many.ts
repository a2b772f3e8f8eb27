import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { LocalCassandra } from '../cluster/local/cassandra.ts';
import { startBenchCassandra, startBenchNodes } from './cluster-processes.ts';
import { measureClusterRun, prepareClusterRun } from './cluster-run.ts';
import { LatencyHistogram } from './latency.ts';
import { type Transport, transports } from './options.ts';
import { inPairs } from './paired-rounds.ts';
import { measureRun, prepareRun } from './run.ts';
import { type ServerProcess, withServer } from './server-process.ts';
import { clientOf, makeSetting, type Setting } from './setting.ts';
import { rounded } from './sum.ts';

const usage = `npm run bench:many -- [options]: one node with many logs, or a cluster, alone or in pairs with an
earlier version
  --masters N    masters of one hot ledger, to which events are appended; 1,000 if left out
  --events N     events that are appended to it; 40,000 if left out
  --only NAME    the transport of the appends: stream, grpc or rest; stream if left out
  --ledgers N    makes N ledgers of one event each, in place of the appends
  --cluster      streams to 100 ledgers of three nodes on one Cassandra, in place of one node and its hot ledger; takes
                 none of --masters, --only and --ledgers
  --against DIR  a checkout of the earlier version, with its packages and generated code: measures both, alternating
  --pairs N      with --against; 7 if left out, 5 with --cluster
  --help
The exit code is 1 where an aim is missed: of the pairs' medians, throughput at least 0.95 of the earlier version's, p99
and Cassandra's processor time at most 1.1 of it, at most 128 MiB more memory.`;

const { values } = parseArgs({
  options: {
    masters: { type: 'string' },
    events: { type: 'string', default: '40000' },
    only: { type: 'string' },
    ledgers: { type: 'string' },
    cluster: { type: 'boolean', default: false },
    against: { type: 'string' },
    pairs: { type: 'string' },
    help: { type: 'boolean' },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
for (const name of ['masters', 'only', 'ledgers'] as const)
  if (values.cluster && values[name] !== undefined) throw new Error(`--${name} is not for --cluster.\n\n${usage}`);
const transport = transportNamed(values.only ?? 'stream');
/** Ledgers that are made at a time. */
const atOnce = 64;

interface Measured {
  readonly perSecond: number;
  readonly p99Ms: number;
  /** Of the server or all nodes, for each event: of the appends alone. */
  readonly cpuUs?: number;
  /** Of Cassandra, for each event. */
  readonly cassandraUs?: number;
  /** Of the largest node. */
  readonly rssMib: number;
}

/** Measures this checkout or another one. */
type Measure = (checkout?: string) => Promise<Measured>;

const report = values.cluster ? await onOneCassandra(reportBy) : await reportBy(measured);
process.stdout.write(`${JSON.stringify(report)}\n`);

function transportNamed(name: string): Transport {
  const found = transports.find((one) => one === name);
  if (found === undefined) throw new Error(usage);
  return found;
}

function reportBy(measure: Measure): Promise<object> {
  const { against, pairs = values.cluster ? 5 : 7 } = values;
  return against === undefined ? measure() : comparedWith(measure, resolve(against), Number(pairs));
}

/** Nodes of both versions have a keyspace each on one Cassandra, whose JIT goes on for minutes. */
async function onOneCassandra<T>(use: (measure: Measure) => Promise<T>): Promise<T> {
  const workDir = mkdtempSync(join(tmpdir(), 'ledger-bench-many-'));
  try {
    await using cassandra = await startBenchCassandra(join(workDir, 'cassandra'));
    return await use((checkout) => measuredCluster(cassandra, workDir, checkout));
  } finally {
    rmSync(workDir, { recursive: true, force: true });
  }
}

async function measuredCluster(cassandra: LocalCassandra, workDir: string, checkout?: string): Promise<Measured> {
  const keyspace = checkout === undefined ? 'now' : 'before';
  const version = checkout === undefined ? { keyspace } : { keyspace, checkout };
  await using cluster = await startBenchNodes(join(workDir, keyspace), cassandra, version);
  const setting = await makeSetting(cluster.nodes[0]?.base ?? '', 100);
  const run = await prepareClusterRun(cluster, setting, Number(values.events), workDir);
  const { perSecond, p99Ms, cpuUsPerEvent } = await measureClusterRun(cluster, run);
  const rssMib = Math.max(...cluster.nodes.map(({ process }) => residentMib(process.pid)));
  return { perSecond, p99Ms, cpuUs: cpuUsPerEvent.nodes, cassandraUs: cpuUsPerEvent.cassandra, rssMib };
}

function measured(checkout?: string): Promise<Measured> {
  const measure = async (server: ServerProcess, workDir: string): Promise<Measured> => {
    const { ledgers } = values;
    const found = ledgers === undefined ? await appends(server, workDir) : await newLedgers(server, Number(ledgers));
    return { ...found, rssMib: residentMib(server.pid) };
  };
  return withServer(null, measure, checkout);
}

function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return rounded(Number(kib) / 1_024);
}

async function comparedWith(measure: Measure, earlier: string, pairs: number) {
  const shown = async (name: string, checkout?: string): Promise<Measured> => {
    const found = await measure(checkout);
    console.error(JSON.stringify({ [name]: found }));
    return found;
  };
  const [before, now] = await inPairs(
    pairs,
    () => shown('before', earlier),
    () => shown('now'),
  );
  const medianOf = (compare: (now: Measured, before: Measured) => number): number =>
    now.map((one, at) => compare(one, before[at] ?? one)).sort((left, right) => left - right)[pairs >> 1] ?? Number.NaN;
  /** NaN where it was not measured. */
  const ratioOf = (name: keyof Measured): number =>
    medianOf((one, other) => (one[name] ?? Number.NaN) / (other[name] ?? Number.NaN));
  const [throughput, p99] = [ratioOf('perSecond'), ratioOf('p99Ms')];
  const [cpu, cassandraCpu] = [ratioOf('cpuUs'), ratioOf('cassandraUs')];
  const moreMib = medianOf((one, other) => one.rssMib - other.rssMib);
  const reached = throughput >= 0.95 && p99 <= 1.1 && !(cassandraCpu > 1.1) && moreMib <= 128;
  if (!reached) process.exitCode = 1;
  const medians = {
    ...{ throughput: rounded(throughput), cpu: rounded(cpu), cassandraCpu: rounded(cassandraCpu) },
    ...{ p99: rounded(p99), moreMib: rounded(moreMib) },
  };
  return { ...medians, reached, before, now };
}

async function appends(server: ServerProcess, workDir: string) {
  const setting = await withMasters(server, await makeSetting(server.baseUrl, 1), Number(values.masters ?? 1_000));
  const run = await prepareRun(transport, setting, Number(values.events), workDir);
  const { perSecond, p50Ms, p99Ms, cpuUsPerEvent } = await measureRun(server, run);
  return { perSecond, p50Ms, p99Ms, cpuUs: cpuUsPerEvent.server };
}

async function withMasters({ baseUrl }: ServerProcess, setting: Setting, count: number): Promise<Setting> {
  const [ledger] = setting.ledgers;
  const [key] = setting.keys;
  if (ledger === undefined || key === undefined) throw new Error('the setting is empty');
  await using client = clientOf(baseUrl, key);
  const masters = [...ledger.masters];
  while (masters.length < count) {
    const fields = { businessRef: `PO-${masters.length}`, scope: 'ORDER' };
    const { uuid } = await client.createMaster({ ledgerId: ledger.ledgerId, ...fields });
    masters.push({ masterId: uuid, ...fields });
  }
  return { ...setting, ledgers: [{ ...ledger, masters: masters.slice(0, count) }] };
}

async function newLedgers({ baseUrl }: ServerProcess, count: number) {
  const { keys } = await makeSetting(baseUrl, 1);
  const [buyer, supplier] = [keys[0], keys.at(-1)];
  if (buyer === undefined || supplier === undefined) throw new Error('the setting is empty');
  await using client = clientOf(baseUrl, buyer);
  const latencies = new LatencyHistogram();
  const startedMs = performance.now();
  let made = 0;
  const worker = async (): Promise<void> => {
    while (made < count) {
      made += 1;
      const beganMs = performance.now();
      await client.createLedger({ supplierSvcId: `svc:actor:${supplier.actorId}` });
      latencies.record((performance.now() - beganMs) * 1_000);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const perSecond = Math.round((count * 1_000) / (performance.now() - startedMs));
  return { perSecond, p50Ms: rounded(latencies.percentileMs(0.5)), p99Ms: rounded(latencies.percentileMs(0.99)) };
}
