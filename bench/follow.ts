import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { pageSeqs } from '../src/service/following/followed-pages.ts';
import { ownerAndOther, startBenchCluster } from './cluster-processes.ts';
import { type FollowLatency, measureFollowLatency } from './follow-latency.ts';
import type { ReadersJob, ReadersReport } from './follow-readers.ts';
import { Forked } from './forked.ts';
import { AppendRounds, pairedRounds, type Round } from './paired-rounds.ts';
import { loadJob, prepareRun, startLoadGenerator } from './run.ts';
import { anonymousMib, cpuTime, type ServerProcess, withServer } from './server-process.ts';
import { ledgersOf, makeSetting, type Setting } from './setting.ts';
import { meanOf, type Percentiles, rounded } from './sum.ts';

const usage = `npm run bench:follow -- [options]: followers of a node, over server-sent events
  --only latency|fanout|idle|other-node
                   the first three if left out; other-node starts a cluster, as \`npm run bench -- --cluster\` does, and
                   follows a ledger through a node that does not own it
  --pairs N        fanout: appends beside 1,000 followers of one hot ledger and beside none, alternating; 4 if left out
  --followers N    fanout: 1,000 if left out; idle: 10,000
  --events N       fanout: appends of a round, 12,800 if left out
  --profile DIR    the server writes CPU profiles there (slows it down)
  --help

Ends with 1 where an aim is missed.`;

const kinds = ['latency', 'fanout', 'idle', 'other-node'] as const;
type Kind = (typeof kinds)[number];
const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    pairs: { type: 'string', default: '4' },
    followers: { type: 'string' },
    events: { type: 'string', default: '12800' },
    profile: { type: 'string' },
    help: { type: 'boolean' },
  },
});
if (values.help || (values.only !== undefined && !kinds.some((kind) => kind === values.only))) {
  console.log(usage);
  process.exit(values.help ? 0 : 1);
}

/** Aims, on one machine. */
const latencyAims = { p50Ms: 10, p99Ms: 40 };
const otherNodeAims = { p99Ms: 100 };
const lossMax = 0.1;
/** Events of a round of the stream load: 12,800 are two to three seconds. */
const roundEvents = Number(values.events);
/** When all events of a round must have arrived: so long for each event to one follower, and so long at least, ms. */
const arrivalMaxMs = 0.03;
const arrivalsMaxMs = 60_000;
const idleAims = { moreMib: 200, kibEach: 20, moreOfOneCore: 0.05 };

// The followers of a run are of few actors.
process.env.FOLLOWERS_PER_ACTOR_MAX = '10000';
const missed: string[] = [];
for (const kind of kinds) {
  if (kind !== values.only && (values.only !== undefined || kind === 'other-node')) continue;
  const report = await measured(kind, values.profile ?? null);
  process.stdout.write(`${JSON.stringify({ [kind]: report }, null, 2)}\n`);
  if (!report.reached) missed.push(kind);
}
if (missed.length > 0) console.error(`missed: ${missed.join(', ')}`);
process.exitCode = missed.length > 0 ? 1 : 0;

type Report = { readonly reached: boolean } & Record<string, unknown>;

function measured(kind: Kind, profileDir: string | null): Promise<Report> {
  return kind === 'other-node'
    ? otherNode(profileDir)
    : withServer<Report>(profileDir, { latency, fanout, idle }[kind]);
}

async function latency({ baseUrl }: ServerProcess): Promise<Report> {
  return latencyReport(await measureFollowLatency(await makeSetting(baseUrl, 1), baseUrl, baseUrl), latencyAims);
}

/** The same on three nodes: the events are appended at the ledger's owner, and followed through another node. */
async function otherNode(profileDir: string | null): Promise<Report> {
  const dir = mkdtempSync(join(tmpdir(), 'ledger-bench-follow-'));
  try {
    await using cluster = await startBenchCluster(dir, profileDir);
    const [first] = cluster.nodes;
    const setting = await makeSetting(first?.base ?? '', 1);
    const { owner, other } = await ownerAndOther(cluster.nodes, setting.ledgers[0]?.ledgerId ?? '');
    return latencyReport(await measureFollowLatency(setting, owner.base, other.base), otherNodeAims);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function latencyReport({ areComplete, ...latencies }: FollowLatency, aim: Partial<Percentiles>): Report {
  const isReached = (name: keyof Percentiles): boolean =>
    latencies.fromCommit[name] <= (aim[name] ?? Number.POSITIVE_INFINITY);
  return { ...latencies, aim, reached: areComplete && isReached('p50Ms') && isReached('p99Ms') };
}

/** Followers in a process of their own. */
function newReaders(): Forked<ReadersJob | 'report', ReadersReport> {
  return new Forked('follow-readers.ts');
}

function figuresOf(rounds: readonly Round[]) {
  const [perSecond, cpuUs] = [rounds.map((one) => one.perSecond), rounds.map((one) => one.cpuUs)];
  return { perSecond: Math.round(meanOf(perSecond)), cpuUsPerAppend: Math.round(meanOf(cpuUs)) };
}

async function fanout(server: ServerProcess, workDir: string): Promise<Report> {
  const pairs = Number(values.pairs);
  const followers = Number(values.followers ?? 1_000);
  const setting = await makeSetting(server.baseUrl, 1);
  const [ledger] = setting.ledgers;
  const load = { rounds: 2 * pairs, events: roundEvents };
  using rounds = await AppendRounds.start(server, 'stream', setting, load, workDir);
  const streams = Array.from({ length: followers }, (_, at) => ({
    ledgerId: ledger?.ledgerId ?? '',
    apiKey: setting.keys[at % setting.keys.length]?.apiKey ?? '',
  }));
  let delivered = 0;
  let caughtUpS = 0;
  const roundBeside = async (): Promise<Round> => {
    using readers = newReaders();
    await readers.ask({ port: server.httpPort, streams });
    const before = await counters(server);
    const appended = await rounds.next();
    const endMs = performance.now();
    for (;;) {
      const { events, ended } = await readers.ask('report');
      if (ended > 0) throw new Error(`${ended} streams have ended`);
      if (events >= roundEvents * 0.99 * followers) {
        delivered += events;
        break;
      }
      if (performance.now() - endMs > arrivalsMaxMs + arrivalMaxMs * roundEvents * followers)
        throw new Error(`only ${events} events have arrived`);
      await setTimeout(100);
    }
    caughtUpS = Math.max(caughtUpS, (performance.now() - endMs) / 1_000);
    const after = await counters(server);
    for (const name of ['events_read', 'events_encoded'] as const) once[name].push(after[name] - before[name]);
    return appended;
  };
  const once = { events_read: [] as number[], events_encoded: [] as number[] };
  const { alone, beside, losses, lossMedian } = await pairedRounds(pairs, () => rounds.next(), roundBeside);
  // The first page that is read holds earlier events too.
  const readOnce = once.events_read.every((read) => read < roundEvents + pageSeqs);
  return {
    ...{ followers, eventsOfARound: roundEvents, readOfARound: once.events_read, encodedOfARound: once.events_encoded },
    ...{ delivered, caughtUpS: rounded(caughtUpS), alone: figuresOf(alone), beside: figuresOf(beside) },
    ...{ losses: losses.map(rounded), lossMedian: rounded(lossMedian) },
    reached: lossMedian <= lossMax && readOnce && once.events_encoded.every((encoded) => encoded <= roundEvents),
  };
}

/** What the main thread's heap holds, garbage included. */
async function heapMib({ opsPort }: ServerProcess): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  return Number(/^nodejs_heap_size_used_bytes (\S+)$/m.exec(text)?.[1] ?? 0) / 2 ** 20;
}

async function counters(server: ServerProcess): Promise<{ events_read: number; events_encoded: number }> {
  const text = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text();
  const value = (name: string) => Number(new RegExp(`^svc_follow_${name}_total (\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return { events_read: value('events_read'), events_encoded: value('events_encoded') };
}

/** Followers of 100 ledgers to which nobody appends: memory, and processor time over two heartbeats. */
async function idle(server: ServerProcess, workDir: string): Promise<Report> {
  const followers = Number(values.followers ?? 10_000);
  const setting = await makeSetting(server.baseUrl, 100);
  const freshMib = anonymousMib(server.pid);
  // Followers come to a node in use: the first load of a process makes its heap grow, whatever the load is.
  await appendOnce(server, setting, workDir);
  const streams = setting.keys.flatMap((key) => {
    const ledgers = ledgersOf(setting, key);
    return Array.from({ length: Math.ceil(followers / setting.keys.length) }, (_, at) => ({
      ledgerId: ledgers[at % ledgers.length]?.ledgerId ?? '',
      apiKey: key.apiKey,
    }));
  });
  await setTimeout(5_000);
  const aloneOfOneCore = await ofOneCore(server, 15_000);
  // Anonymous memory: pages of the data file that were read are given back when others need them.
  const [before, heapBefore] = [anonymousMib(server.pid), await heapMib(server)];
  using readers = newReaders();
  await readers.ask({ port: server.httpPort, streams: streams.slice(0, followers) });
  // Past the first heartbeats, which have checkpoints signed.
  await setTimeout(20_000);
  const moreOfOneCore = rounded(((await ofOneCore(server, 30_000)) - aloneOfOneCore) * 100) / 100;
  const moreMib = anonymousMib(server.pid) - before;
  const kibEach = (moreMib * 1_024) / followers;
  return {
    ...{ followers, freshMib: rounded(freshMib), beforeMib: rounded(before) },
    ...{ moreMib: rounded(moreMib), kibEach: rounded(kibEach) },
    heapMoreMib: rounded((await heapMib(server)) - heapBefore),
    ...{ aloneOfOneCore, moreOfOneCore, aim: idleAims },
    reached: moreMib <= idleAims.moreMib && kibEach <= idleAims.kibEach && moreOfOneCore <= idleAims.moreOfOneCore,
  };
}

/** Some thousand appends on a stream, as one round of the other loads begins. */
async function appendOnce(server: ServerProcess, setting: Setting, workDir: string): Promise<void> {
  const run = await prepareRun('stream', setting, 0, workDir);
  using generator = startLoadGenerator();
  const { failed, firstFailure } = await generator.ask({ ...loadJob(run, server.grpcPort), from: 0, to: run.warmUp });
  if (failed > 0) throw new Error(`${failed} failed: ${firstFailure}`);
}

/** Processor time of the server during `ms`, of all its threads. */
async function ofOneCore({ pid }: ServerProcess, ms: number): Promise<number> {
  const [beforeUs, startedMs] = [cpuTime(pid).allUs, performance.now()];
  await setTimeout(ms);
  const part = (cpuTime(pid).allUs - beforeUs) / 1_000 / (performance.now() - startedMs);
  return rounded(part * 100) / 100;
}
