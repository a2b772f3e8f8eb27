import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LoadGenerator } from './load-generator.ts';
import type { Transport } from './options.ts';
import { benchEventType } from './payload.ts';
import { loadJob, prepareRun } from './run.ts';
import { cpuTime, startServer } from './server-process.ts';
import { clientOf, keyCount, makeSetting } from './setting.ts';
import { meanOf } from './sum.ts';
import { Receivers } from './webhook-receiver-process.ts';

/** Events of a round: two to three seconds. */
const roundEvents: Readonly<Record<Transport, number>> = { stream: 20_800, grpc: 11_200, rest: 11_200 };

interface Round {
  readonly perSecond: number;
  /** Microseconds of the server's processor time an append, of all threads. */
  readonly cpuUs: number;
}

export interface AppendsReport {
  readonly transport: Transport;
  readonly pairs: number;
  readonly alone: Round;
  readonly besideThree: Round;
  readonly deliveries: number;
  /** What part of the appends a second is lost: the median of the pairs, and each of them in order of size. */
  readonly lossMedian: number;
  readonly losses: readonly number[];
}

/**
 * The load of `npm run bench` through a transport on one hot ledger, with no subscription and with three that match
 * every event, in turns on one server, so that what else the machine does weighs on both alike; which of the two comes
 * first changes from pair to pair.
 */
export async function appendsBesideWebhooks(transport: Transport, pairs: number): Promise<AppendsReport> {
  const workDir = mkdtempSync(join(tmpdir(), 'bench-webhooks-'));
  const receivers = await Receivers.start(['healthy', 'healthy', 'healthy']);
  const server = await startServer(join(workDir, 'data'), null);
  try {
    const setting = await makeSetting(server.baseUrl, 1);
    const run = await prepareRun(transport, setting, 2 * pairs * roundEvents[transport], workDir);
    const job = loadJob(run, transport === 'rest' ? server.httpPort : server.grpcPort);
    await using generator = new LoadGenerator();
    await generator.run({ ...job, from: 0, to: run.warmUp });
    const laneEvents = roundEvents[transport] / keyCount;
    let from = run.warmUp;
    const round = async (): Promise<Round> => {
      const part = { ...job, from, to: from + laneEvents };
      from += laneEvents;
      const before = cpuTime(server.pid);
      const result = await generator.run(part);
      if (result.failed > 0) throw new Error(`${transport}: ${result.failed} failed: ${result.firstFailure}`);
      const cpuUs = cpuTime(server.pid).allUs - before.allUs;
      return { perSecond: result.accepted / result.seconds, cpuUs: cpuUs / result.accepted };
    };
    const [key] = setting.keys;
    if (key === undefined) throw new Error('the setting has no key');
    await using client = clientOf(server.baseUrl, key);
    const besideThree = async (): Promise<Round> => {
      const ids: string[] = [];
      for (const url of receivers.urls) {
        ids.push((await client.createWebhook({ url, eventTypes: [benchEventType] })).id);
      }
      const measured = await round();
      for (const id of ids) await client.deleteWebhook({ id });
      return measured;
    };
    const [alone, beside]: [Round[], Round[]] = [[], []];
    for (let pair = 0; pair < pairs; pair++) {
      if (pair % 2 === 1) beside.push(await besideThree());
      alone.push(await round());
      if (pair % 2 === 0) beside.push(await besideThree());
    }
    const losses = alone
      .map((one, at) => 1 - (beside[at] ?? one).perSecond / one.perSecond)
      .sort((left, right) => left - right);
    return {
      transport,
      pairs,
      alone: mean(alone),
      besideThree: mean(beside),
      deliveries: await receivers.received(),
      lossMedian: losses[Math.floor(pairs / 2)] ?? 0,
      losses: losses.map((loss) => Math.round(loss * 1_000) / 1_000),
    };
  } finally {
    await server.stop();
    receivers.stop();
    rmSync(workDir, { recursive: true });
  }
}

function mean(rounds: readonly Round[]): Round {
  const of = (name: keyof Round) => Math.round(meanOf(rounds.map((one) => one[name])));
  return { perSecond: of('perSecond'), cpuUs: of('cpuUs') };
}
