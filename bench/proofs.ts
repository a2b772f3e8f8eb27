import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Forked } from './forked.ts';
import { AppendRounds, pairedRounds } from './paired-rounds.ts';
import { type ServerProcess, withServer } from './server-process.ts';
import { makeSetting } from './setting.ts';
import type { GetterJob, GetterReport } from './steady-getter.ts';
import { meanOf, rounded } from './sum.ts';

const usage = `npm run bench:proofs -- [options]: appends to one hot ledger of one node, alternating beside
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

const report = await withServer(values.profile ?? null, measure);
process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
if (!report.reached) process.exitCode = 1;

async function measure(server: ServerProcess, workDir: string) {
  const { baseUrl, httpPort } = server;
  const setting = await makeSetting(baseUrl, 1);
  const [ledger] = setting.ledgers;
  const [key] = setting.keys;
  if (ledger === undefined || key === undefined) throw new Error('the setting is empty');
  const load = { rounds: 2 * pairs, events: roundEvents };
  using rounds = await AppendRounds.start(server, 'stream', setting, load, workDir);
  const round = async (path: string) => {
    using getter = new Forked<GetterJob | 'report', GetterReport>('steady-getter.ts');
    await getter.ask({ port: httpPort, path, apiKey: key.apiKey, perSecond: Number(values['per-second']) });
    await setTimeout(1_000);
    const appended = await rounds.next();
    const asked = await getter.ask('report');
    if (asked.failed > 0) throw new Error(`${asked.failed} failed: ${asked.firstFailure}`);
    return { ...appended, asked };
  };
  const ofLedger = `/v1/ledgers/${ledger.ledgerId}`;
  const ofCheckpoints = `${ofLedger}/checkpoint`;
  // The first checkpoint has the tree made of the events.
  const headers = { authorization: `Bearer ${key.apiKey}` };
  while ((await fetch(baseUrl + ofCheckpoints, { headers })).status === 503) await setTimeout(500);
  type AskedRound = Awaited<ReturnType<typeof round>>;
  const { alone, beside, losses, lossMedian } = await pairedRounds(
    pairs,
    () => round(ofLedger),
    () => round(ofCheckpoints),
  );
  const figuresOf = (measured: readonly AskedRound[]) => ({
    appendsPerSecond: Math.round(meanOf(measured.map(({ perSecond }) => perSecond))),
    cpuUsPerAppend: Math.round(meanOf(measured.map(({ cpuUs }) => cpuUs))),
    mainThreadUsPerAppend: Math.round(meanOf(measured.map(({ mainUs }) => mainUs))),
    answered: Math.round(meanOf(measured.map(({ asked }) => asked.answered))),
    p50Ms: rounded(meanOf(measured.map(({ asked }) => asked.p50Ms))),
    p99Ms: rounded(meanOf(measured.map(({ asked }) => asked.p99Ms))),
  });
  return {
    besideReads: figuresOf(alone),
    besideCheckpoints: figuresOf(beside),
    ...{ losses: losses.map(rounded), lossMedian: rounded(lossMedian), lossMax, reached: lossMedian <= lossMax },
  };
}
