import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { SeededRandom } from '../simulation/random.ts';
import { describeOn } from '../support/backends/for-tests.ts';
import { proveLedger } from './campaign/verified-export.ts';
import { type FaultKind, faults } from './faults/kinds.ts';
import { checkLoad } from './load/check.ts';
import { Load } from './load/load.ts';
import { type LoadWorld, makeLoadWorld } from './load/load-world.ts';
import { ownBackends } from './own-backends.ts';
import { type ClusterUnderTest, startCluster } from './rig/cluster-under-test.ts';

// Processes start slowly on a busy machine; each waits for what it needs and no longer.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

/** Far above what the campaign demands at its 99th percentile: this machine does other things too. */
const recoveryMaxMs = 10_000;

const facts: Readonly<Record<FaultKind, string>> = {
  node_killed: 'ledgers of a node that was killed take appends at the others',
  node_paused: 'a node that slept through its leases does no harm when it wakes up',
  redis_stopped: 'appends go on without Redis, and its return brings back who owns what',
  redis_flushed: 'shards are taken anew after Redis forgot them all',
  cassandra_paused: 'a store that hangs is waited for, and what was under way is settled',
  cassandra_killed: 'a store that was killed has everything that was acknowledged',
  cut_off: 'nodes that cannot reach each other or Redis write what they are asked to, in one chain',
  rolling_restart: 'restarting all nodes in turn fails no call',
  scaled: 'three nodes become six and three again, in balance, and no call fails',
};

describeOn('a cluster of real processes under load', 'Cassandra and Redis of its own', await ownBackends(), () => {
  const random = new SeededRandom(20_261_121);
  let cluster: ClusterUnderTest;
  let world: LoadWorld;
  let load: Load;

  beforeAll(async () => {
    cluster = await startCluster({ nodes: 3, cassandra: null, bucketEvents: 64 });
    await cluster.untilBalanced(60_000);
    world = await makeLoadWorld(cluster.nodes, 12);
    load = new Load({ cluster, world, random, workers: 8, streams: 1, restMaxMs: 150 });
    load.start();
  });

  afterAll(async () => {
    await world?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  test.each(Object.entries(facts))('%s: %s', async (kind) => {
    const before = load.history.acknowledgements.length;
    const outcome = await faults[kind as FaultKind]({ cluster, load, world, random });
    expect(outcome.violations ?? []).toEqual([]);
    expect(outcome.recoveryMs ?? 0).toBeLessThan(recoveryMaxMs);
    const { ledgers } = world;
    const [ledger] = ledgers;
    if (ledger === undefined) throw new Error('no ledger');
    expect(await load.appendTo(ledger, cluster.nodes)).not.toBeNull();
    expect(load.history.acknowledgements.length).toBeGreaterThan(before);
  });

  test('a ledger read while a node is killed is proved by export and verify', async () => {
    const [first, second] = cluster.nodes;
    const [ledger] = world.ledgers;
    if (first === undefined || second === undefined || ledger === undefined) throw new Error('too few');
    const proving = proveLedger(cluster, first, ledger.id, world.buyer.apiKey);
    await second.kill();
    const proof = await proving;
    await second.start();
    expect(proof).toMatchObject({ kind: 'proved' });
  });

  test('whatever callers were told is true of the chains that they left', async () => {
    await load.stop();
    const ids = world.ledgers.map(({ id }) => id);
    const { violations, events } = await checkLoad(cluster.settings, ids, load.history);
    expect(violations).toEqual([]);
    expect(load.history.failed).toEqual([]);
    expect(events).toBeGreaterThan(load.history.acknowledgements.length);
  });
});
