import { Forked } from './forked.ts';
import type { Transport } from './options.ts';
import { AppendRounds, pairedRounds, type Round } from './paired-rounds.ts';
import { benchEventType } from './payload.ts';
import type { ServerProcess } from './server-process.ts';
import { clientOf, makeSetting } from './setting.ts';
import { meanOf, sumOf } from './sum.ts';
import type { ReceiverReport, ReceiversJob } from './webhook-receivers.ts';

/** Events of a round: two to three seconds. */
const roundEvents: Readonly<Record<Transport, number>> = { stream: 20_800, grpc: 11_200, rest: 11_200 };

/** Means of rounds. */
type MeanRound = Pick<Round, 'perSecond' | 'cpuUs'>;

interface AppendsReport {
  readonly transport: Transport;
  readonly pairs: number;
  readonly alone: MeanRound;
  readonly besideThree: MeanRound;
  readonly deliveries: number;
  /** What part of the appends a second is lost: the median of the pairs, and each of them in order of size. */
  readonly lossMedian: number;
  readonly losses: readonly number[];
}

/**
 * The load of `npm run bench` through a transport on one hot ledger, with no subscription and with three that match
 * every event, alternating on one server, so that what else the machine does weighs on both alike. Which of the two
 * comes first changes from pair to pair.
 */
export async function appendsBesideWebhooks(
  server: ServerProcess,
  workDir: string,
  transport: Transport,
  pairs: number,
): Promise<AppendsReport> {
  using receivers = new Forked<ReceiversJob, ReceiverReport[]>('webhook-receivers.ts');
  const urls = (await receivers.ask(['healthy', 'healthy', 'healthy'])).map(({ url }) => url);
  const setting = await makeSetting(server.baseUrl, 1);
  const load = { rounds: 2 * pairs, events: roundEvents[transport] };
  using rounds = await AppendRounds.start(server, transport, setting, load, workDir);
  const [key] = setting.keys;
  if (key === undefined) throw new Error('the setting has no key');
  await using client = clientOf(server.baseUrl, key);
  const besideThree = async () => {
    const ids: string[] = [];
    for (const url of urls) ids.push((await client.createWebhook({ url, eventTypes: [benchEventType] })).id);
    const measured = await rounds.next();
    for (const id of ids) await client.deleteWebhook({ id });
    return measured;
  };
  const { alone, beside, losses, lossMedian } = await pairedRounds(pairs, () => rounds.next(), besideThree);
  return {
    transport,
    pairs,
    alone: mean(alone),
    besideThree: mean(beside),
    deliveries: sumOf(await receivers.ask('report'), ({ received }) => received),
    lossMedian,
    losses: losses.map((loss) => Math.round(loss * 1_000) / 1_000),
  };
}

function mean(rounds: readonly MeanRound[]): MeanRound {
  const of = (name: keyof MeanRound) => Math.round(meanOf(rounds.map((one) => one[name])));
  return { perSecond: of('perSecond'), cpuUs: of('cpuUs') };
}
