import { expect, test } from 'vitest';
import { afterMs } from '../../cluster/local/ports.ts';
import { SeededRandom } from '../simulation/random.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { proveLedger } from './campaign/verified-export.ts';
import { ownerOfSomething } from './faults/owner.ts';
import { checkLoad } from './load/check.ts';
import { LoadFollowers } from './load/followers.ts';
import { Load } from './load/load.ts';
import { makeLoadWorld } from './load/load-world.ts';
import { lookAtStore } from './load/store-looks.ts';
import { startCluster } from './rig/cluster-under-test.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';

/** Appends per second that are asked for, all to one ledger. A machine that is slower takes fewer. */
const rate = Number(process.env.FOLLOWED_APPENDS_PER_S || 1_000);
const count = Number(process.env.FOLLOWED_BY || 100);
/** So many kills, which may take so long. */
const killsMax = Number(process.env.FOLLOWED_KILLS || 20);
const killingMaxMs = Number(process.env.FOLLOWED_MINUTES || 20) * 60_000;
/** The kills behind which a cut or an outage comes. */
const silentAt = 1;
const withoutRedisAt = 2;
const refusedAt = 3;
/** How many of the followers verify each event: a signature costs as much as appending one. */
const verifying = 3;
const streams = 8;
const seed = Number(process.env.FOLLOWED_SEED || 1);
const redisGoneMs = 10_000;
const cutMs = 5_000;
const restMs = 2_000;
const caughtUpMaxMs = 300_000;
const startMaxMs = 180_000;
const worldAttemptsMax = 10;

await describeOnCassandra('followers of a hot ledger under faults', (address) => {
  test('are sent every acknowledged event once and in order, and none before it is durable', {
    timeout: 3_600_000,
  }, async () => {
    const random = new SeededRandom(seed);
    await using cluster = await startCluster({ nodes: 3, cassandra: address });
    await cluster.untilBalanced(60_000);
    const world = await madeAtLast(() => makeLoadWorld(cluster.nodes, 1));
    const restMaxMs = Math.round((2_000 * streams) / rate);
    const load = new Load({ cluster, world, random, workers: 2, streams, restMaxMs });
    const { history } = load;
    const [ledger] = world.ledgers;
    if (ledger === undefined) throw new Error('no ledger');
    const nodes = [...cluster.nodes];
    await using followers = await LoadFollowers.start({ nodes, world, history, random, count, verifying });
    await using looking = await lookAtStore(cluster.settings, [ledger.id], history);
    const beganMs = performance.now();
    load.start();
    const killed = { owners: 0, others: 0 };
    const kill = async (victim: NodeUnderTest) => {
      await victim.kill();
      await afterMs(random.between(0, restMs));
      await victim.start({ ready: false });
      await victim.untilReady(startMaxMs);
    };
    const faults: Promise<unknown>[] = [];
    let kills = 0;
    for (; kills < killsMax && performance.now() - beganMs < killingMaxMs; kills += 1) {
      await afterMs(restMs);
      const { victim } = await ownerOfSomething({ cluster, world, random }, startMaxMs);
      const isOwner = kills % 2 === 0;
      killed[isOwner ? 'owners' : 'others'] += 1;
      await kill(isOwner ? victim : random.pick(nodes.filter((node) => node !== victim)));
      if (kills === silentAt) faults.push(followers.cut('silent', cutMs));
      if (kills === withoutRedisAt) {
        await cluster.redis.current.process.kill();
        await afterMs(redisGoneMs);
        await cluster.restartRedis();
      }
      if (kills === refusedAt) faults.push(followers.cut('refused', cutMs));
    }
    await Promise.all(faults);
    await afterMs(restMs);
    await load.stop();
    const seconds = (performance.now() - beganMs) / 1_000;
    expect(await load.appendTo(ledger, nodes)).not.toBeNull();
    const stoppedMs = performance.now();
    await followers.untilAllAcknowledged(caughtUpMaxMs);
    const behindS = (performance.now() - stoppedMs) / 1_000;
    await looking[Symbol.asyncDispose]();
    await followers[Symbol.asyncDispose]();
    const metrics = await Promise.all(nodes.map((node) => node.metrics()));
    const checked = await checkLoad(cluster.settings, [ledger.id], history);
    const proof = await proveLedger(cluster, cluster.nodeAt(0), ledger.id, world.buyer.apiKey);
    await world.close();

    const acknowledged = history.acknowledgements.length;
    const told = {
      ...{ killed, rate, followers: count, seconds: Math.round(seconds), acknowledged, events: checked.events },
      appends_per_s: Math.round(acknowledged / seconds),
      sent: followers.receipts,
      sent_per_s: Math.round(followers.receipts / (seconds + behindS)),
      reconnects: followers.reconnects,
      all_had_everything_after_s: Math.round(behindS * 10) / 10,
      looks: history.looks.length,
      lag: metrics.map(lagOf),
      proof: proof.kind,
    };
    process.stdout.write(`followed under faults: ${JSON.stringify(told)}\n`);
    if (checked.violations.length > 0) cluster.keep();
    expect(checked.violations.slice(0, 20)).toEqual([]);
    expect(followers.receipts).toBe(count * checked.events);
    expect(proof).toMatchObject({ kind: 'proved', events: checked.events });
    expect(kills).toBe(killsMax);
    // Otherwise the kills and the cuts hit nothing.
    expect(followers.reconnects).toBeGreaterThanOrEqual(kills);
    expect(history.looks.length).toBeGreaterThan(kills);
  });
});

/** Its calls are not repeated by themselves, and on a busy machine one may be late. A world made in part does no harm. */
async function madeAtLast<T>(make: () => Promise<T>): Promise<T> {
  for (let attempt = 1; attempt < worldAttemptsMax; attempt += 1) {
    const made = await make().catch(() => null);
    if (made !== null) return made;
  }
  return make();
}

/** The share of events that a node has sent within a second of their commit, since its last start. */
function lagOf(metrics: string): string {
  const value = (series: string) => Number(new RegExp(`^${series} (\\S+)$`, 'm').exec(metrics)?.[1] ?? 0);
  const all = value('svc_follow_lag_seconds_count');
  const within = (le: string) => {
    const sent = value(`svc_follow_lag_seconds_bucket\\{le="${le}"\\}`);
    return `${Math.round((100 * sent) / Math.max(1, all))} % in ${le} s`;
  };
  return `${all} sent, ${within('0.1')}, ${within('1')}`;
}
