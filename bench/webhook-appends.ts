import { openWebhookNode } from './webhook-node.ts';
import { Receivers } from './webhook-receiver-process.ts';

const roundMs = 3_000;
const warmUpRounds = 2;
const appendsAtOnce = 256;

interface Round {
  readonly perSecond: number;
  /** Microseconds of processor time an append, of all threads: says more than time where other programs run too. */
  readonly cpuUs: number;
}

export interface AppendsReport {
  readonly pairs: number;
  readonly alone: Round;
  readonly besideThree: Round;
  readonly deliveriesPerSecond: number;
  /** Median of the pairs: what part of the appends a second is lost. */
  readonly lossMedian: number;
  /** Median of the pairs: what part more an append costs. */
  readonly cpuMedian: number;
}

/** Appends with no subscription and with three, in turns on one node, so that what else the machine does weighs on both alike. */
export async function appendsBesideWebhooks(pairs: number): Promise<AppendsReport> {
  const receivers = await Receivers.start(['healthy', 'healthy', 'healthy']);
  const node = await openWebhookNode();
  const append = await node.openMaster();
  for (let at = 0; at < warmUpRounds; at++) await round(append);
  const [alone, beside]: [Round[], Round[]] = [[], []];
  const before = await receivers.received();
  for (let at = 0; at < pairs; at++) {
    alone.push(await round(append));
    const ids = await Promise.all(receivers.urls.map((url) => node.subscribe(url)));
    beside.push(await round(append));
    await Promise.all(ids.map((id) => node.unsubscribe(id)));
  }
  const sent = (await receivers.received()) - before;
  receivers.stop();
  await node.close();
  const pair = (of: (alone: Round, beside: Round) => number) =>
    alone.map((one, at) => of(one, beside[at] ?? one)).sort((a, b) => a - b)[Math.floor(pairs / 2)] ?? 0;
  return {
    pairs,
    alone: mean(alone),
    besideThree: mean(beside),
    deliveriesPerSecond: Math.round((sent * 1_000) / (pairs * roundMs)),
    lossMedian: pair((one, other) => 1 - other.perSecond / one.perSecond),
    cpuMedian: pair((one, other) => other.cpuUs / one.cpuUs - 1),
  };
}

async function round(append: () => Promise<unknown>): Promise<Round> {
  const cpuBefore = process.cpuUsage();
  const end = performance.now() + roundMs;
  let count = 0;
  await Promise.all(
    Array.from({ length: appendsAtOnce }, async () => {
      while (performance.now() < end) {
        await append();
        count += 1;
      }
    }),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  return { perSecond: (count * 1_000) / roundMs, cpuUs: (user + system) / count };
}

function mean(rounds: readonly Round[]): Round {
  const of = (name: keyof Round) => Math.round(rounds.reduce((sum, one) => sum + one[name], 0) / rounds.length);
  return { perSecond: of('perSecond'), cpuUs: of('cpuUs') };
}
