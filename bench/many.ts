import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { LatencyHistogram } from './latency.ts';
import { measureRun, prepareRun } from './run.ts';
import { type ServerProcess, withServer } from './server-process.ts';
import { clientOf, makeSetting, type Setting } from './setting.ts';
import { rounded } from './sum.ts';

const usage = `npm run bench:many -- [options]: one node with many logs, for pairs with an earlier version
  --masters N    masters of one hot ledger, to which a stream appends; 1,000 if left out
  --events N     events that are appended to it; 40,000 if left out
  --ledgers N    makes N ledgers of one event each, in place of the appends
  --help`;

const { values } = parseArgs({
  options: {
    masters: { type: 'string', default: '1000' },
    events: { type: 'string', default: '40000' },
    ledgers: { type: 'string' },
    help: { type: 'boolean' },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
/** Ledgers that are made at a time. */
const atOnce = 64;

const measured = await withServer(null, async (server, workDir) => {
  const { ledgers } = values;
  const report = ledgers === undefined ? await appends(server, workDir) : await newLedgers(server, Number(ledgers));
  const rssMib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1];
  return { ...report, rssMib: rounded(Number(rssMib) / 1_024) };
});
process.stdout.write(`${JSON.stringify(measured)}\n`);

async function appends(server: ServerProcess, workDir: string) {
  const setting = await withMasters(server, await makeSetting(server.baseUrl, 1), Number(values.masters));
  const run = await prepareRun('stream', setting, Number(values.events), workDir);
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
  const lane = async (): Promise<void> => {
    while (made < count) {
      made += 1;
      const beganMs = performance.now();
      await client.createLedger({ supplierSvcId: `svc:actor:${supplier.actorId}` });
      latencies.record((performance.now() - beganMs) * 1_000);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  const perSecond = Math.round((count * 1_000) / (performance.now() - startedMs));
  return { perSecond, p50Ms: rounded(latencies.percentileMs(0.5)), p99Ms: rounded(latencies.percentileMs(0.99)) };
}
