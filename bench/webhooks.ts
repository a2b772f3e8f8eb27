import { parseArgs } from 'node:util';
import { transports } from './options.ts';
import { withServer } from './server-process.ts';
import { appendsBesideWebhooks } from './webhook-appends.ts';
import { heldDeliveriesBound, type IsolationRun, isolationRun } from './webhook-isolation.ts';

const usage = `npm run bench:webhooks -- [options]: webhooks with real connections
  --events N    isolation: events to 17 healthy receivers, alone and beside 2 dead ones and a slow one; 10,000 if left out, 0: not run
  --alone       isolation without the sick receivers only
  --pairs N     appends beside 3 matching subscriptions and beside none, alternating; 7 if left out, 0: not run
  --only rest|grpc|stream
  --profile DIR the server writes CPU profiles there (slows it down)
  --help

Ends with 1 where a bound is not kept: twice the time, order, memory; a tenth of the appends.`;

/** Bound of the time of healthy receivers beside sick ones. */
const slowdownMax = 2;
/** What part of the appends a second three matching subscriptions may cost. */
const lossMax = 0.1;

const options = {
  events: { type: 'string' },
  pairs: { type: 'string' },
  alone: { type: 'boolean' },
  only: { type: 'string' },
  profile: { type: 'string' },
  help: { type: 'boolean' },
} as const;
const { values } = parseArgs({ options });
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const [events, pairs] = [Number(values.events ?? 10_000), Number(values.pairs ?? 7)];
const profileDir = values.profile ?? null;
const chosen = transports.filter((transport) => values.only === undefined || values.only === transport);
if (!Number.isInteger(events) || !Number.isInteger(pairs) || chosen.length === 0) throw new Error(usage);

const broken: string[] = [];
const bound = (name: string, isKept: boolean) => {
  if (!isKept) broken.push(name);
};

if (events > 0) {
  const alone = await isolation(false);
  tell(alone);
  if (values.alone !== true) {
    const beside = await isolation(true);
    const slowdown = beside.deliveredSeconds / alone.deliveredSeconds;
    tell({ ...beside, slowdown });
    bound('slowdown', slowdown <= slowdownMax);
    bound('order', alone.inOrder && beside.inOrder);
    bound('memory', Math.max(alone.heldDeliveriesMax, beside.heldDeliveriesMax) <= heldDeliveriesBound);
  }
}
for (const transport of pairs > 0 ? chosen : []) {
  const report = await withServer(profileDir, (server, dir) => appendsBesideWebhooks(server, dir, transport, pairs));
  tell(report);
  bound(`appends, ${transport}`, report.lossMedian <= lossMax);
}
if (broken.length > 0) console.error(`not kept: ${broken.join(', ')}`);
process.exit(broken.length > 0 ? 1 : 0);

function isolation(besideSick: boolean): Promise<IsolationRun> {
  return withServer(profileDir, ({ baseUrl, opsPort }) =>
    isolationRun({ baseUrl, opsBase: `http://127.0.0.1:${opsPort}` }, events, besideSick),
  );
}

function tell(report: object): void {
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
}
