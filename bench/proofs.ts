import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Forked } from './forked.ts';
import { LoadGenerator } from './load-generator.ts';
import { loadJob, prepareRun } from './run.ts';
import { cpuTime, type ServerProcess, startServer } from './server-process.ts';
import { keyCount, makeSetting } from './setting.ts';
import type { GetterJob, GetterReport } from './steady-getter.ts';
import { meanOf, rounded } from './sum.ts';

const usage = `npm run bench:proofs -- [options]: appends to one hot ledger of one node, in turns beside
checkpoints of it at its newest size, and beside as many GET /v1/ledgers/{ledger_id}
  --pairs N        7 if left out
  --per-second N   checkpoints, or reads of the ledger, a second; 1,000 if left out
  --events N       events of a round; 12,800 if left out
  --profile DIR    the server writes CPU profiles there (slows it down)
  --help

Ends with 1 where the aim is missed.`;

const { values } = parseArgs({
  options: {
    pairs: { type: 'string', default: '7' },
    'per-second': { type: 'string', default: '1000' },
    events: { type: 'string', default: '12800' },
    profile: { type: 'string' },
    help: { type: 'boolean' },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
/** Appends lose no more beside checkpoints than this share of those beside reads of the ledger. */
const lossMax = 0.1;
const pairs = Number(values.pairs);
const roundEvents = Number(values.events);

const workDir = mkdtempSync(join(tmpdir(), 'bench-proofs-'));
const server = await startServer(join(workDir, 'data'), values.profile ?? null);
try {
  const report = await measure(server);
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  if (!report.reached) process.exitCode = 1;
} finally {
  await server.stop();
  rmSync(workDir, { recursive: true });
}

async function measure({ baseUrl, grpcPort, httpPort, pid }: ServerProcess) {
  const setting = await makeSetting(baseUrl, 1);
  const run = await prepareRun('stream', setting, 2 * pairs * roundEvents, workDir);
  const job = loadJob(run, grpcPort);
  const [ledger] = setting.ledgers;
  const [key] = setting.keys;
  if (ledger === undefined || key === undefined) throw new Error('the setting is empty');
  await using generator = new LoadGenerator();
  await generator.run({ ...job, from: 0, to: run.warmUp });
  let from = run.warmUp;
  const round = async (path: string) => {
    using getter = new Forked<GetterJob, GetterReport>('./steady-getter.ts');
    getter.send({ port: httpPort, path, apiKey: key.apiKey, perSecond: Number(values['per-second']) });
    await setTimeout(1_000);
    const part = { ...job, from, to: from + roundEvents / keyCount };
    from = part.to;
    const before = cpuTime(pid);
    const { accepted, seconds, failed, firstFailure } = await generator.run(part);
    const after = cpuTime(pid);
    const asked = await getter.ask('report');
    if (failed + asked.failed > 0) throw new Error(`failed: ${firstFailure ?? asked.firstFailure}`);
    const mainUs = (after.mainUs - before.mainUs) / accepted;
    return { perSecond: accepted / seconds, mainUs, allUs: (after.allUs - before.allUs) / accepted, asked };
  };
  const ofLedger = `/v1/ledgers/${ledger.ledgerId}`;
  const ofCheckpoints = `${ofLedger}/checkpoint`;
  // The first checkpoint has the tree made of the events.
  const headers = { authorization: `Bearer ${key.apiKey}` };
  while ((await fetch(baseUrl + ofCheckpoints, { headers })).status === 503) await setTimeout(500);
  type Round = Awaited<ReturnType<typeof round>>;
  const [reads, checkpoints]: [Round[], Round[]] = [[], []];
  for (let pair = 0; pair < pairs; pair += 1) {
    if (pair % 2 === 1) checkpoints.push(await round(ofCheckpoints));
    reads.push(await round(ofLedger));
    if (pair % 2 === 0) checkpoints.push(await round(ofCheckpoints));
  }
  const losses = reads.map((one, at) => 1 - (checkpoints[at]?.perSecond ?? 0) / one.perSecond).sort((a, b) => a - b);
  const lossMedian = rounded(losses[Math.floor(pairs / 2)] ?? 0);
  const told = (rounds: readonly Round[]) => ({
    appendsPerSecond: Math.round(meanOf(rounds.map(({ perSecond }) => perSecond))),
    cpuUsPerAppend: Math.round(meanOf(rounds.map(({ allUs }) => allUs))),
    mainThreadUsPerAppend: Math.round(meanOf(rounds.map(({ mainUs }) => mainUs))),
    answered: Math.round(meanOf(rounds.map(({ asked }) => asked.answered))),
    p50Ms: rounded(meanOf(rounds.map(({ asked }) => asked.p50Ms))),
    p99Ms: rounded(meanOf(rounds.map(({ asked }) => asked.p99Ms))),
  });
  return {
    besideReads: told(reads),
    besideCheckpoints: told(checkpoints),
    ...{ losses: losses.map(rounded), lossMedian, lossMax, reached: lossMedian <= lossMax },
  };
}
