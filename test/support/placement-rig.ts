import { Leases } from '../../cluster/placement/leases.ts';
import { type LossCause, Rebalancing } from '../../cluster/placement/rebalancing.ts';
import { defaultTimings } from '../../cluster/placement/timings.ts';
import { Life } from '../simulation/life.ts';
import { SeededRandom } from '../simulation/random.ts';
import { SimulatedRedis } from '../simulation/redis.ts';
import { SimulatedTime } from '../simulation/time.ts';
import { healthyWire } from '../simulation/wire.ts';

export const ids = (count: number) => Array.from({ length: count }, (_, at) => `node-${at}`);

/** Nodes over one simulated Redis. A hand-over takes `leaving.lastMs`. */
export function cluster(shardCount = 32, timings = defaultTimings) {
  const time = new SimulatedTime(0);
  const random = new SeededRandom(1);
  const redis = new SimulatedRedis(time);
  const leaving = { now: 0, most: 0, lastMs: 5 };
  const startAt = (id: string, address: string) => {
    const life = new Life(time);
    const state = { ...healthyWire(), faultRate: 0 };
    const server = redis.client({ time, random, state, life, timeoutMs: 100 });
    const monotonicMs = () => time.now;
    const leases = new Leases({ self: id, server, timings, monotonicMs, random: (n) => random.bytes(n) });
    const store = { answers: true };
    const nodeClock = { isRight: true };
    const moves: string[] = [];
    const dropped: number[] = [];
    const lost: LossCause[] = [];
    const renewals: { readonly seconds: number; readonly isAnswered: boolean }[] = [];
    const alarms: string[] = [];
    const rebalancing = new Rebalancing({
      self: { id, address, startedAt: String(time.now) },
      board: server,
      server,
      leases,
      shardCount,
      timings,
      clock: life.clock,
      monotonicMs,
      meter: {
        moved: (reason) => void moves.push(reason),
        handedOver: () => {},
        renewed: (seconds, isAnswered) => void renewals.push({ seconds, isAnswered }),
        lost: (cause) => void lost.push(cause),
      },
      leave: async (shard, release) => {
        leaving.now++;
        leaving.most = Math.max(leaving.most, leaving.now);
        dropped.push(shard);
        await new Promise<void>((resolve) => void life.clock.after(leaving.lastMs, resolve));
        await release().finally(() => leaving.now--);
      },
      hasStore: () => store.answers,
      isClockRight: () => nodeClock.isRight,
      clockAheadMs: () => (nodeClock.isRight ? 0 : 60_000),
      failed: () => {},
      alarmed: (sentence) => void alarms.push(sentence),
    });
    rebalancing.start();
    const owners = () => server.owners(shardCount);
    return { id, life, leases, rebalancing, state, store, nodeClock, moves, dropped, lost, renewals, alarms, owners };
  };
  const start = (id: string) => startAt(id, id);
  const pass = async (ms: number) => void (await time.pass(time.now + ms, () => false));
  return { start, startAt, pass, redis, leaving, time };
}

/** Nodes that run until all shards are in place. */
export async function settledCluster(count: number) {
  const world = cluster();
  const nodes = ids(count).map(world.start);
  const [first] = nodes;
  if (first === undefined) throw new RangeError('There is no node');
  await world.pass(20_000);
  return { ...world, nodes, first, held: () => nodes.flatMap(({ leases }) => leases.held) };
}

/** The owner of a shard as a node knows it. */
export async function located(
  leases: Leases,
  shard: number,
  pass: (ms: number) => Promise<void>,
): Promise<string | null> {
  let owner: string | null = 'nobody answered';
  void leases.locate(shard).then((found) => {
    owner = found;
  });
  await pass(200);
  return owner;
}
