import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createClient, keysFromResolver, verifyEvents } from '../../src/client/index.ts';
import { apiKeyHash } from '../../src/domain/keys/api-key.ts';
import { withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { append, bearerOf, newMaster, newOrder, newParty, type Order } from '../support/parties.ts';
import { done, expectRefused, rest } from '../support/parties-rest.ts';
import { runCli } from '../support/scrub-cli.ts';
import { eventually, receiveWebhooks } from '../support/webhook-receiver.ts';
import { type DamagedStore, damageStore } from './damage/damaged-store.ts';
import type { Scene } from './damage/scene.ts';
import { type AttackedCluster, movedMaxMs, startAttackedCluster } from './rig/attacked-cluster.ts';
import { shardCount } from './rig/cluster-under-test.ts';
import { placement, redisOf } from './rig/false-member.ts';
import type { NodeUnderTest } from './rig/node-under-test.ts';
import { untilSettled } from './rig/settled.ts';
import { withRetries } from './rig/with-retries.ts';

interface Found {
  readonly ledger_id: string | null;
  readonly type: string;
  readonly detail: string;
  readonly key: string;
}

await describeOnCassandra('a cluster of three whose stores are tampered with', (address) => {
  let attacked: AttackedCluster;
  let store: DamagedStore;
  /** Ids of records that were damaged one by one. */
  const damagedRecords: string[] = [];
  const ledgersOfDamagedActors: string[] = [];
  const damageRecord = async (kind: string, id: string) => {
    const cql = "UPDATE record SET value = '{}' WHERE kind = ? AND id = ?";
    await withClient(attacked.cluster.settings, (client) => client.execute(cql, [kind, id], { prepare: true }));
    damagedRecords.push(id);
  };
  beforeAll(async () => {
    attacked = await startAttackedCluster(address, async (cluster) => {
      store = await damageStore(cluster);
      // Makes the nodes drop all ledgers that they have in memory.
      const redis = await redisOf(cluster);
      await redis.flushall();
      redis.disconnect();
      for (const node of cluster.nodes)
        await eventually(
          () => node.counted('svc_leases_lost_total{cause="missing"}'),
          (lost) => lost > shardCount / 6,
        );
      await cluster.untilBalanced(movedMaxMs);
      await untilSettled(cluster, movedMaxMs);
    });
  }, 120_000);
  afterAll(() => attacked?.[Symbol.asyncDispose](), 60_000);

  test('an unreadable subscription stops no other webhook, and is logged and counted at each node', async () => {
    const { cluster, note } = attacked;
    await using receiver = await receiveWebhooks();
    const order = await withRetries(() => newOrder(cluster.nodeAt(0).baseUrl, { keyed: false }));
    const pair = { order, master: await withRetries(() => newMaster(order)) };
    const subscribe = async ({ bearer: headers }: Order['buyer'], node: NodeUnderTest, path: string) => {
      const body = { url: new URL(path, receiver.url).href, event_types: ['NOTED'] };
      return (await done(node.baseUrl, 'POST', '/v1/webhooks', { headers, body })).text('id');
    };
    const id = await subscribe(order.buyer, cluster.nodeAt(0), '/damaged');
    await damageRecord('webhook_subscription', id);
    // A new subscription makes every node read all subscriptions.
    await subscribe(order.supplier, cluster.nodeAt(1), '/whole');
    const known = (node: NodeUnderTest) => node.counted('svc_unreadable_records_total{kind="webhook_subscription"}');
    for (const node of cluster.nodes) {
      await expect.poll(() => known(node), { timeout: 10_000 }).toBeGreaterThan(0);
      await expect.poll(() => readFileSync(node.logFile, 'utf8'), { timeout: 5_000 }).toContain(id);
      expect((await note(node, pair)).status).toBe(200);
    }
    await eventually(
      async () => receiver.received.filter(({ path }) => path === '/whole').length,
      (count) => count >= cluster.nodes.length,
    );
  }, 30_000);

  test('a wrong hint and damaged rows are integrity errors at each node within 5 s', async () => {
    const { cluster, note } = attacked;
    for (const node of cluster.nodes)
      for (const { name, order, master, reads } of store.scenes) {
        const began = performance.now();
        const path = `/v1/ledgers/${order.ledgerId}/events?limit=1000`;
        const page = await rest(node.baseUrl, 'GET', path, order.buyer);
        const { verified } = page.body.integrity as { verified: boolean };
        const seqs = page.rows('events').map(({ seq }) => Number(seq));
        expect({ name, status: page.status, verified }).toEqual({ name, status: 200, verified: reads === 'whole' });
        expect(seqs.length).toBeGreaterThan(4);
        if (reads === 'whole') expect(seqs).toEqual(seqs.map((_, at) => at));
        if (name.startsWith('ledger.bucket')) expect((await note(node, { order, master })).status).toBe(200);
        expect(performance.now() - began).toBeLessThan(5_000);
      }
    const [first, ...others] = cluster.nodes;
    const party = await withRetries(() => newParty(first?.baseUrl ?? '', { keyed: false }));
    await damageRecord('actor', party.actorId);
    // The node that made the actor may still have it as it was: the damage changed no version.
    for (const { baseUrl } of others)
      expect((await rest(baseUrl, 'GET', `/v1/resolve/${party.svcId}`)).code).toBe('internal');
  }, 60_000);

  test('events of a signer whose record is damaged are read at each node, with the damage in integrity', async () => {
    const { cluster } = attacked;
    const { baseUrl } = cluster.nodeAt(0);
    const order = await withRetries(() => newOrder(baseUrl));
    const master = await withRetries(() => newMaster(order));
    expect((await append(master, order.supplier, 'NOTED', {})).status).toBe(200);
    await damageRecord('actor', order.supplier.actorId);
    ledgersOfDamagedActors.push(order.ledgerId);
    const path = `/v1/ledgers/${order.ledgerId}/events?verify=signatures`;
    const details: string[] = [];
    for (const node of cluster.nodes) {
      const page = await rest(node.baseUrl, 'GET', path, order.buyer);
      expect([page.status, page.rows('events').length]).toEqual([200, 4]);
      const { issues } = page.body.integrity as { issues: { type: string; detail: string }[] };
      for (const { type, detail } of issues) {
        expect(type).toBe('invalid_actor_sig');
        details.push(detail);
      }
    }
    // The node that took the calls, and the owner of the ledger, may still have the actor as it was.
    expect(new Set(details)).toEqual(new Set(['the stored record of the actor that signed is damaged']));
  }, 30_000);

  test('an append to a damaged log is unavailable with the seq of the damage at each node, and counted', async () => {
    const { cluster } = attacked;
    const damagedLedgers = async () => {
      const counts = cluster.nodes.map((node) => node.counted('svc_damaged_ledgers_total'));
      return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
    };
    const damaged = store.scenes.filter(({ reads }) => reads === 'issues');
    expect(damaged).toHaveLength(2);
    for (const { name, order, master } of damaged) {
      const path = `/v1/ledgers/${order.ledgerId}/events?limit=1000`;
      const events = async () => (await rest(cluster.nodeAt(0).baseUrl, 'GET', path, order.buyer)).rows('events');
      const before = await events();
      for (const node of cluster.nodes) {
        const counted = await damagedLedgers();
        const refused = await append({ ...master, base: node.baseUrl }, order.supplier, 'NOTED', {});
        expectRefused(refused, 503, 'unavailable');
        // Without the row of seq 6, or with a head other than the newest event.
        const details = { ledger_id: order.ledgerId, seq: name.startsWith('row') ? 6 : 7 };
        expect(refused.body).toMatchObject({ error: { details } });
        expect(await damagedLedgers()).toBe(counted + 1);
      }
      expect(await events()).toEqual(before);
    }
  });

  test('a damaged API key is internal at each node, and never invalid_api_key', async () => {
    const { cluster } = attacked;
    const { apiKey, bearer } = await withRetries(() => newParty(cluster.nodeAt(0).baseUrl));
    await damageRecord('api_key', apiKeyHash(apiKey));
    const unknown = `${apiKey.slice(0, -1)}${apiKey.endsWith('a') ? 'b' : 'a'}`;
    for (const node of cluster.nodes) {
      const list = (headers: Readonly<Record<string, string>>) => rest(node.baseUrl, 'GET', '/v1/ledgers', { headers });
      expectRefused(await list(bearer), 500, 'internal');
      expect(await node.counted('svc_unreadable_records_total{kind="api_key"}')).toBeGreaterThan(0);
      await expect.poll(() => readFileSync(node.logFile, 'utf8')).toContain(apiKeyHash(apiKey));
      expectRefused(await list(bearerOf(unknown)), 401, 'invalid_api_key');
      expect((await list(store.forged.buyer.bearer)).status).toBe(200);
    }
  });

  test('forged and stale snapshots allow no write: the owner builds the state from the log', async () => {
    const { cluster } = attacked;
    for (const { scene, stranger } of store.strangers)
      for (const node of cluster.nodes) {
        const answer = await append({ ...scene.master, base: node.baseUrl }, stranger, 'NOTED', { n: 99 });
        expect({ name: scene.name, code: answer.code }).toEqual({ name: scene.name, code: 'not_found' });
      }
    const refused = cluster.nodes.map((node) => node.counted('svc_refused_snapshots_total{reason="unsealed"}'));
    expect((await Promise.all(refused)).filter((count) => count > 0)).toHaveLength(1);
  });

  test('verify names every damage and every event without permission, and nothing else', async () => {
    const { cluster } = attacked;
    const { code, out, err } = await runCli(cluster.cassandraEnv, ['cluster', 'verify', '--all', '--json']);
    expect({ code, err }).toEqual({ code: 1, err: '' });
    const { findings } = JSON.parse(out) as { findings: Found[] };
    const idsOf = ({ order, master }: Scene) => [order.ledgerId, master.uuid, order.supplier.actorId];
    const naming = (ids: readonly string[]) =>
      findings.filter(({ ledger_id, detail, key }) => ids.some((id) => `${ledger_id} ${detail} ${key}`.includes(id)));
    for (const { name, found, ...scene } of store.scenes) {
      const types = naming(idsOf(scene)).map(({ type }) => type);
      expect({ name, types }).toEqual({ name, types: found.length === 0 ? [] : expect.arrayContaining([...found]) });
    }
    const forged = naming([store.forged.ledgerId]).map(({ type }) => type);
    expect(forged).toEqual(expect.arrayContaining(['not_permitted', 'closed', 'dated_ahead']));
    for (const id of damagedRecords) expect(naming([id]).map(({ type }) => type)).toContain('damaged_row');
    expect(damagedRecords).toHaveLength(4);
    const all = [...store.scenes.flatMap(idsOf), store.forged.ledgerId, ...damagedRecords, ...ledgersOfDamagedActors];
    expect(findings.filter((one) => !naming(all).includes(one))).toEqual([]);
  }, 60_000);

  test('a verifying client finds the same events at each node', async () => {
    const { cluster } = attacked;
    const { ledgerId, buyer } = store.forged;
    for (const { baseUrl } of cluster.nodes) {
      await using client = createClient({ baseUrl, apiKey: buyer.apiKey });
      const events = client.ledgerEvents(ledgerId, {}, { onIssues: () => {} });
      const { verdict, issues } = await verifyEvents(events, { keys: keysFromResolver(client), kind: 'ledger' });
      expect(verdict).toBe('invalid');
      expect(issues.map(({ type }) => type)).toEqual(
        expect.arrayContaining(['not_permitted', 'closed', 'dated_ahead']),
      );
    }
  });

  test('bad keys in Redis are ignored, logged and counted by each node, and stop no shard', async () => {
    const { cluster, expectAllWell, pairOf } = attacked;
    const redis = await redisOf(cluster);
    onTestFinished(() => redis.disconnect());
    const pair = pairOf(cluster.nodeAt(0));
    const lease = `lease:{${placement}}:${cluster.shardOf(pair.order.ledgerId)}`;
    const announced = (id: string, address: string) =>
      `${Date.now() + 60_000}|${JSON.stringify({ id, address, startedAt: 't', shardCount, draining: false })}`;
    await redis.multi().del(lease).set(lease, 'mine').exec();
    for (const [id, address] of Object.entries({ odd: 'http://odd:1', 'odd-1': 'unix:/tmp/odd', 'odd-2': 'odd' }))
      await redis.hset(`members:{${placement}}`, id, announced(id, address));
    await redis.hset(`orders:{${placement}}`, cluster.nodeAt(2).id, 'fly');
    for (const node of cluster.nodes) {
      for (const kind of ['member', 'order'])
        await expect
          .poll(() => node.counted(`svc_redis_bad_values_total{kind="${kind}"}`), { timeout: 5_000 })
          .toBeGreaterThan(0);
      const told = () => readFileSync(node.logFile, 'utf8').split(`members:{${placement}} odd\\"`).length - 1;
      await expect.poll(told).toBe(1);
      const { members } = await node.view();
      expect(members.map(({ id }) => id)).toEqual(['node-1', 'node-2', 'node-3']);
    }
    await expect.poll(() => redis.type(lease), { timeout: 10_000 }).toBe('hash');
    await redis.hdel(`orders:{${placement}}`, cluster.nodeAt(2).id);
    await cluster.untilBalanced(movedMaxMs);
    await expectAllWell();
  }, 40_000);
});
