import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { Metadata } from '@grpc/grpc-js';
import { canonicalize } from 'json-canonicalize';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { outcomeAnswer } from '../../cluster/peers/answers.ts';
import { answerBytesMax, type ExchangeCall } from '../../cluster/peers/incoming-stream.ts';
import type { PeerSecurity } from '../../cluster/peers/security.ts';
import { serverWire } from '../../cluster/peers/wire.ts';
import { commandText } from '../../cluster/peers/wire-command.ts';
import { createClient, keysFromResolver, verifyEvents } from '../../src/client/index.ts';
import type { AppendEvent } from '../../src/domain/ledger/command.ts';
import { type AnswerSchema, ExchangeResponseSchema } from '../../src/gen/svc/cluster/v1/peers_pb.ts';
import { withClient } from '../contract/cassandra-factory.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import * as commands from '../support/commands.ts';
import { append, eventsOf, type Master, newMaster, newOrder, type Order, signatureOf } from '../support/parties.ts';
import { done, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';
import { falseProof, peerWithSecret, strangePort } from '../support/peer-attackers.ts';
import { runCli } from '../support/scrub-cli.ts';
import { eventually, receiveWebhooks } from '../support/webhook-receiver.ts';
import { chainOf } from '../support/world.ts';
import { type DamagedStore, damageStore } from './damage/damaged-store.ts';
import type { Scene } from './damage/scene.ts';
import { askedAgain, isRetryable } from './rig/asked-again.ts';
import { type ClusterUnderTest, shardCount, startCluster } from './rig/cluster-under-test.ts';
import { announceFalseMember, placement, redisOf } from './rig/false-member.ts';
import { layOutNode, type NodeUnderTest } from './rig/node-under-test.ts';
import { untilSettled } from './rig/settled.ts';

interface Pair {
  readonly order: Order;
  readonly master: Master;
}

interface Found {
  readonly ledger_id: string | null;
  readonly type: string;
  readonly detail: string;
  readonly key: string;
}

/** Field 99 of protobuf with a text, as a later version may add it to any message. */
const laterField = Buffer.concat([Buffer.from([0x9a, 0x06, 5]), Buffer.from('later')]);
const movedMaxMs = 20_000;
const portOf = (url: string) => Number(new URL(url).port);

/** A node that knows the secret, and answers what it is asked as the test says; with fields that no version knows. */
function answering(
  security: PeerSecurity,
  answerOf: (id: number) => MessageInitShape<typeof AnswerSchema>,
): (call: ExchangeCall) => void {
  return (call) => {
    const wire = serverWire(security, 'node-x', call.metadata);
    if (wire === null) throw new Error('not a node');
    wire.answer.set('x-cluster-later', 'x');
    call.on('error', () => {});
    call.sendMetadata(wire.answer);
    call.on('data', (frame: Buffer) => {
      for (const { id } of wire.open(frame).asks) {
        const answers = create(ExchangeResponseSchema, { answers: [answerOf(id)] });
        const bytes = Buffer.concat([toBinary(ExchangeResponseSchema, answers), laterField]);
        call.write(wire.seal(fromBinary(ExchangeResponseSchema, bytes)));
      }
    });
  };
}

await describeOnCassandra('a cluster of three that is attacked', (address) => {
  let cluster: ClusterUnderTest;
  let security: PeerSecurity;
  let store: DamagedStore;
  /** A whole ledger of each node. */
  const owned = new Map<string, Pair>();
  const pairOf = ({ id }: NodeUnderTest): Pair => {
    const pair = owned.get(id);
    if (pair === undefined) throw new Error(`${id} has no ledger`);
    return pair;
  };
  const nodeAt = (at: number): NodeUnderTest => {
    const node = cluster.nodes[at];
    if (node === undefined) throw new RangeError(`There is no node ${at}`);
    return node;
  };
  let notes = 0;
  let damagedSubscription = '';
  /** Appends through a node, under a key of its own. */
  const note = ({ baseUrl }: NodeUnderTest, { order, master }: Pair, note = `note ${++notes}`) =>
    append({ ...master, base: baseUrl }, order.buyer, 'NOTED', { note }, { headers: { 'idempotency-key': note } });
  const notesIn = async (node: NodeUnderTest, { order }: Pair) =>
    (await eventsOf(node.baseUrl, order.buyer, order.ledgerId)).map(({ payload }) => (payload as Fields).note);
  /** Every node runs, is ready, and appends to each node's ledger. */
  const expectAllWell = async () => {
    for (const node of cluster.nodes) {
      await node.untilReady(10_000);
      for (const pair of owned.values())
        expect(await askedAgain(async () => notRetryable(await note(node, pair)))).toMatchObject({ status: 200 });
    }
  };
  /** A command as a node sends it, signed. */
  const command = ({ order, master }: Pair, payload: Fields, from: Partial<AppendEvent> = {}) => {
    const { buyer, ledgerId } = order;
    const whole = { ...payload, ...master.injected };
    const signedForm = canonicalize(whole);
    return commands.append({
      ledgerId,
      masterId: master.uuid,
      actorId: buyer.actorId,
      eventType: 'NOTED',
      payload: signedForm,
      signature: {
        signature: signatureOf(buyer.key.privateKey, 'NOTED', ledgerId, whole),
        keyId: buyer.kid ?? '',
        signedForm,
      },
      ...from,
    });
  };
  const peerOf = (node: NodeUnderTest) => peerWithSecret(portOf(node.internalUrl), security, 'node-y', node.id);
  const counted = async (node: NodeUnderTest, series: string) => {
    const line = (await node.metrics()).split('\n').find((one) => one.startsWith(`${series} `));
    return Number(line?.slice(series.length) ?? 0);
  };

  beforeAll(async () => {
    const env = { NODE_OPTIONS: `--import=${new URL('./rig/shifted-clock.ts', import.meta.url)}` };
    cluster = await startCluster({ nodes: 3, cassandra: address, env });
    security = { tls: null, secret: cluster.commonEnv.CLUSTER_SECRET ?? '' };
    await cluster.untilBalanced(movedMaxMs);
    store = await damageStore(cluster);
    // Nodes forget all ledgers that they have in memory.
    const redis = await redisOf(cluster);
    await redis.flushall();
    redis.disconnect();
    for (const node of cluster.nodes)
      await eventually(
        () => counted(node, 'svc_leases_lost_total{cause="missing"}'),
        (lost) => lost > shardCount / 6,
      );
    await cluster.untilBalanced(movedMaxMs);
    await untilSettled(cluster, movedMaxMs);
    while (owned.size < 3) {
      const order = await askedAgain(() => newOrder(nodeAt(0).baseUrl));
      const owner = await cluster.ownerOf(order.ledgerId);
      if (owner === null || owned.has(owner.id)) continue;
      owned.set(owner.id, { order, master: await askedAgain(() => newMaster(order)) });
    }
  }, 120_000);
  afterAll(() => cluster?.[Symbol.asyncDispose](), 60_000);

  test('an unknown error code of a newer node is internal at each node and stops none', async () => {
    const later = { code: 'quota_exceeded', message: 'Later.', details: '{}' };
    const refusing = answering(security, (id) => ({ id, result: { case: 'refusal', value: later } }));
    const port = await strangePort(refusing);
    const pair = pairOf(nodeAt(0));
    {
      await using _ = await announceFalseMember(cluster, port, cluster.shardOf(pair.order.ledgerId));
      for (const node of cluster.nodes)
        await expect
          .poll(async () => (await note(node, pair)).body, { timeout: 5_000 })
          .toMatchObject({ error: { code: 'internal', message: 'Later.' } });
    }
    await expectAllWell();
  }, 60_000);

  test('commands of a newer node are executed as far as a node can read them, and else left to the caller', async () => {
    for (const node of cluster.nodes) {
      const pair = pairOf(node);
      const { ask, read, answers } = await peerOf(node);
      read();
      const changed = (change: Fields) =>
        JSON.stringify({ ...JSON.parse(commandText(command(pair, { note: `later ${node.id}` }))), ...change });
      ask([changed({ tenant: 'x' })], laterField);
      await expect.poll(() => answers.length).toBe(1);
      ask([changed({ kind: 'merge_ledgers' })], laterField);
      await expect.poll(() => answers.length).toBe(2);
      expect(answers.map(({ result }) => result.case)).toEqual(['outcome', 'notOwner']);
      expect((await notesIn(node, pair)).filter((one) => one === `later ${node.id}`)).toHaveLength(1);
    }
    await expectAllWell();
  });

  test('a peer with the secret writes nothing that is not signed as it is', async () => {
    for (const node of cluster.nodes) {
      const pair = pairOf(node);
      const before = (await notesIn(node, pair)).length;
      const { ask, read, answers } = await peerOf(node);
      read();
      const { payload, signature } = command(pair, { note: 'forged' });
      const forged = [
        command(
          pair,
          { note: 'forged' },
          { signature: { ...commands.signature('', payload), keyId: signature?.keyId ?? '' } },
        ),
        command(pair, { note: 'signed' }, { payload }),
        command(pair, { note: 'forged' }, { eventType: { x: 1 } as unknown as string }),
        command(pair, { note: 'forged' }, { signature: null }),
        command(pair, { note: 'forged' }, { signature: null, signatureRule: 'optional' }),
      ];
      ask(forged.map(commandText));
      await expect.poll(() => answers.length).toBe(forged.length);
      const byId = answers
        .toSorted((a, b) => a.id - b.id)
        .map(({ result }) => (result.case === 'refusal' ? result.value.code : result.case));
      expect(byId).toEqual(['invalid_signature', 'notOwner', 'notOwner', 'signature_required', 'notOwner']);
      expect(await notesIn(node, pair)).toHaveLength(before);
    }
    await expectAllWell();
  });

  test('a peer that never reads is read no further and holds at most its bound', async () => {
    const node = nodeAt(1);
    const pair = pairOf(node);
    const commandKeys = [commands.commandKey('large')];
    const first = await peerOf(node);
    first.read();
    first.ask([commandText(command(pair, { text: 'x'.repeat(300_000) }, { commandKeys }))]);
    await expect.poll(() => first.answers.length).toBe(1);
    const { stream, ask } = await peerOf(node);
    // Without a first read grpc-js would take everything in.
    stream.pause();
    stream.read(0);
    const held = () => counted(node, 'svc_memory_budget_bytes{kind="peer"}');
    const again = commandText(command(pair, { text: '' }, { commandKeys, resubmitted: true }));
    const askForMegabytes = () => ask(Array.from({ length: 20 }, () => again));
    for (let messages = 1; messages <= 5; messages++) {
      askForMegabytes();
      // But for what the connection itself takes.
      await expect.poll(held).toBeGreaterThan(messages * 6_000_000 - 6_000_000);
    }
    // Each would bring as much again: they stay where they are, in the connection.
    for (let messages = 0; messages < 6; messages++) askForMegabytes();
    await expectAllWell();
    expect(await held()).toSatisfy((bytes: number) => bytes > answerBytesMax / 2 && bytes < answerBytesMax);
    stream.cancel();
    await expect.poll(held).toBe(0);
  }, 30_000);

  test('a wrong answer of an owner is believed at no node, which reads the log instead', async () => {
    const [event] = chainOf(commands.openLedger(), commands.createMaster()).events.slice(-1);
    if (event === undefined) throw new Error('no event');
    const port = await strangePort(answering(security, (id) => outcomeAnswer(id, { event, replayed: false })));
    const pair = pairOf(nodeAt(0));
    {
      await using _ = await announceFalseMember(cluster, port, cluster.shardOf(pair.order.ledgerId));
      for (const node of cluster.nodes) {
        const wrong = () => counted(node, 'svc_forwarded_calls_total{result="wrong_answer"}');
        const told = async () => {
          const text = `believed ${++notes}`;
          const { raw, body } = await askedAgain(async () => notRetryable(await note(node, pair, text)));
          expect(raw).not.toContain(event.id);
          const written = (await eventsOf(node.baseUrl, pair.order.buyer, pair.order.ledgerId)).filter(
            ({ payload }) => (payload as Fields).note === text,
          );
          expect(written.map(({ id }) => id)).toEqual([body.event_id]);
          return wrong();
        };
        await expect.poll(told).toBeGreaterThan(0);
      }
    }
    await expectAllWell();
  }, 60_000);

  test('a false address in Redis learns nothing and delays no call', async () => {
    const heard: (Buffer | Metadata)[] = [];
    let streams = 0;
    const port = await strangePort((call) => {
      streams += 1;
      heard.push(call.metadata);
      call.on('error', () => {});
      call.on('data', (frame: Buffer) => void heard.push(frame));
      call.sendMetadata(falseProof('node-x'));
    });
    const pair = pairOf(nodeAt(0));
    {
      await using _ = await announceFalseMember(cluster, port, cluster.shardOf(pair.order.ledgerId));
      const asked = new Set<string>();
      await expect
        .poll(
          async () => {
            for (const node of cluster.nodes) {
              expect((await askedAgain(async () => notRetryable(await note(node, pair)))).status).toBe(200);
              if ((await counted(node, 'svc_forwarded_calls_total{result="unreachable"}')) > 0) asked.add(node.id);
            }
            return asked.size;
          },
          { timeout: 10_000, interval: 200 },
        )
        .toBe(3);
    }
    expect(streams).toBeGreaterThanOrEqual(3);
    expect(heard.filter((one) => Buffer.isBuffer(one))).toEqual([]);
    expect(JSON.stringify(heard)).not.toContain(security.secret);
    await expectAllWell();
  }, 60_000);

  test('256 silent connections to each internal port keep nobody out and end by themselves', async () => {
    const began = performance.now();
    const sockets: Socket[] = [];
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    const open = async (node: NodeUnderTest, localAddress: string, sent: string) => {
      const socket = connect({ port: portOf(node.internalUrl), host: '127.0.0.1', localAddress });
      sockets.push(socket);
      socket.on('error', () => {}).resume();
      await once(socket, 'connect');
      if (sent !== '') socket.write(sent);
    };
    const isOpen = ({ readyState }: Socket) => readyState === 'open';
    for (const node of cluster.nodes) {
      // One address has so many places, and its newest connections have them.
      const before = sockets.length;
      for (let at = 0; at < 70; at++) await open(node, '127.0.2.1', '');
      await expect
        .poll(() => sockets.slice(before).map(isOpen), { timeout: 5_000 })
        .toEqual([...Array(6).fill(false), ...Array(64).fill(true)]);
      await Promise.all(
        Array.from({ length: 256 }, (_, at) =>
          open(node, `127.0.1.${1 + (at % 8)}`, at % 2 === 0 ? '' : 'GET /health/ready HTTP/1.1\r\nhost: x\r\n'),
        ),
      );
    }
    expect(sockets.filter(isOpen).length).toBeGreaterThan(3 * 200);
    for (const node of cluster.nodes) expect(await node.metrics()).toMatch(/^svc_shards/m);
    await expectAllWell();
    await expect.poll(() => sockets.filter(isOpen).length, { timeout: 15_000, interval: 200 }).toBe(0);
    expect(performance.now() - began).toBeLessThan(20_000);
  }, 40_000);

  test('a node whose clock is an hour ahead gives its shards away and writes nothing', async () => {
    const node = nodeAt(1);
    const pair = pairOf(node);
    const file = join(cluster.dir, node.id, 'clock-ahead-ms');
    const holds = async () => [...(await cluster.owners()).values()].filter((owner) => owner === node.id).length;
    const register = async () => {
      const body = { organization_name: 'Acme', contact_email: 'dev@example.com', accept_terms: true };
      return (await rest(node.baseUrl, 'POST', '/v1/developer/register', { body })).code;
    };
    writeFileSync(file, String(3_600_000));
    onTestFinished(() => writeFileSync(file, '0'));
    await expect.poll(register).toBe('unavailable');
    // Refused at once, before its shards have gone; and carried out by who has them then.
    await expect.poll(holds, { timeout: 10_000 }).toBe(0);
    const forwarded = async () => (await note(node, pair)).status;
    await expect.poll(forwarded, { timeout: 10_000 }).toBe(200);
    expect((await cluster.owners()).size).toBe(shardCount);
    for (const { created_at } of await eventsOf(nodeAt(0).baseUrl, pair.order.buyer, pair.order.ledgerId))
      expect(Date.parse(String(created_at))).toBeLessThan(Date.now() + 60_000);
    expect(await register()).toBe('unavailable');
    writeFileSync(file, '0');
    await expect.poll(holds, { timeout: 15_000 }).toBeGreaterThan(shardCount / 6);
    await expectAllWell();
  }, 60_000);

  test('an unreadable subscription stops no other webhook, and is logged and counted at each node', async () => {
    await using receiver = await receiveWebhooks();
    const order = await askedAgain(() => newOrder(nodeAt(0).baseUrl, { keyed: false }));
    const pair = { order, master: await askedAgain(() => newMaster(order)) };
    const subscribe = async ({ bearer: headers }: Order['buyer'], node: NodeUnderTest, path: string) => {
      const body = { url: new URL(path, receiver.url).href, event_types: ['NOTED'] };
      return (await done(node.baseUrl, 'POST', '/v1/webhooks', { headers, body })).text('id');
    };
    const id = await subscribe(order.buyer, nodeAt(0), '/damaged');
    await withClient(cluster.settings, (client) =>
      client.execute("UPDATE record SET value = '{}' WHERE kind = 'webhook_subscription' AND id = ?", [id], {
        prepare: true,
      }),
    );
    damagedSubscription = id;
    // Who hears of this one reads all of them.
    await subscribe(order.supplier, nodeAt(1), '/whole');
    const known = (node: NodeUnderTest) => counted(node, 'svc_unreadable_records_total{kind="webhook_subscription"}');
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

  test('a wrong hint and damaged rows are integrity errors in time at each node, never unavailable', async () => {
    for (const node of cluster.nodes)
      for (const { name, order, master, reads } of store.scenes) {
        const began = performance.now();
        const path = `/v1/ledgers/${order.ledgerId}/events?limit=1000`;
        const page = await rest(node.baseUrl, 'GET', path, { headers: order.buyer.bearer });
        const { verified } = page.body.integrity as { verified: boolean };
        const seqs = page.rows('events').map(({ seq }) => Number(seq));
        expect({ name, status: page.status, verified }).toEqual({ name, status: 200, verified: reads === 'whole' });
        expect(seqs.length).toBeGreaterThan(4);
        if (reads === 'whole') expect(seqs).toEqual(seqs.map((_, at) => at));
        if (name.startsWith('ledger.bucket')) expect((await note(node, { order, master })).status).toBe(200);
        expect(performance.now() - began).toBeLessThan(5_000);
      }
    const ofActor = store.scenes.find(({ name }) => name.startsWith('record.value'));
    for (const { baseUrl } of cluster.nodes) {
      const resolved = () => rest(baseUrl, 'GET', `/v1/resolve/${ofActor?.order.supplier.svcId}`);
      await expect.poll(async () => (await resolved()).code).toBe('internal');
    }
  }, 60_000);

  test('forged and stale snapshots allow no write: the owner builds the state from the log', async () => {
    for (const { scene, stranger } of store.strangers)
      for (const node of cluster.nodes) {
        const answer = await append({ ...scene.master, base: node.baseUrl }, stranger, 'NOTED', { n: 99 });
        expect({ name: scene.name, code: answer.code }).toEqual({ name: scene.name, code: 'not_found' });
      }
    const refused = cluster.nodes.map((node) => counted(node, 'svc_refused_snapshots_total{reason="unsealed"}'));
    expect((await Promise.all(refused)).filter((count) => count > 0)).toHaveLength(1);
  });

  test('verify names every damage and every event without permission, and nothing else', async () => {
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
    expect(naming([damagedSubscription]).map(({ type }) => type)).toContain('damaged_row');
    const all = [...store.scenes.flatMap(idsOf), store.forged.ledgerId, damagedSubscription];
    expect(findings.filter((one) => !naming(all).includes(one))).toEqual([]);
  }, 60_000);

  test('a verifying client finds the same events at each node', async () => {
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
    const redis = await redisOf(cluster);
    onTestFinished(() => redis.disconnect());
    const pair = pairOf(nodeAt(0));
    const lease = `lease:{${placement}}:${cluster.shardOf(pair.order.ledgerId)}`;
    const announced = (id: string, address: string) =>
      `${Date.now() + 60_000}|${JSON.stringify({ id, address, startedAt: 't', shardCount, draining: false })}`;
    await redis.multi().del(lease).set(lease, 'mine').exec();
    for (const [id, address] of Object.entries({ odd: 'http://odd:1', 'odd-1': 'unix:/tmp/odd', 'odd-2': 'odd' }))
      await redis.hset(`members:{${placement}}`, id, announced(id, address));
    await redis.hset(`orders:{${placement}}`, nodeAt(2).id, 'fly');
    for (const node of cluster.nodes) {
      for (const kind of ['member', 'order'])
        await expect
          .poll(() => counted(node, `svc_redis_bad_values_total{kind="${kind}"}`), { timeout: 5_000 })
          .toBeGreaterThan(0);
      const told = () => readFileSync(node.logFile, 'utf8').split(`members:{${placement}} odd\\"`).length - 1;
      await expect.poll(told).toBe(1);
      const { members } = await node.view();
      expect(members.map(({ id }) => id)).toEqual(['node-1', 'node-2', 'node-3']);
    }
    await expect.poll(() => redis.type(lease), { timeout: 10_000 }).toBe('hash');
    await redis.hdel(`orders:{${placement}}`, nodeAt(2).id);
    await cluster.untilBalanced(movedMaxMs);
    await expectAllWell();
  }, 40_000);

  test('a node with a wrong setting exits with one sentence and reveals no password', async () => {
    const at = (name: string) => join(cluster.dir, name);
    const files = ['-keyout', at('own.key'), '-out', at('own.pem'), '-subj', '/CN=localhost'];
    const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];
    execFileSync('openssl', [...kind, ...files], { stdio: 'pipe' });
    writeFileSync(at('no.pem'), 'no PEM');
    const own = { CERT: at('own.pem'), KEY: at('own.key') };
    const wrong: readonly (readonly [variable: string, env: Readonly<Record<string, string>>, said?: string])[] = [
      ['LEASE_TTL_MS', { LEASE_TTL_MS: '1' }],
      ['ADVERTISE_ADDRESS', { ADVERTISE_ADDRESS: 'http://127.0.0.1:9100' }],
      [
        'CLUSTER_TLS_CA_FILE',
        { CLUSTER_TLS_CA_FILE: at('no.pem'), CLUSTER_TLS_CERT_FILE: own.CERT, CLUSTER_TLS_KEY_FILE: own.KEY },
      ],
      ['TLS_CERT_FILE', { TLS_CERT_FILE: own.CERT, TLS_KEY_FILE: own.KEY }, 'has expired on'],
    ];
    const redisPort = portOf(cluster.redis.current.url);
    const fourth = async (id: string, env: Readonly<Record<string, string>>) => {
      const { REDIS_URL: _, ...common } = cluster.commonEnv;
      const node = await layOutNode({ id, dir: cluster.dir, redisPort, env: { ...common, ...env } });
      onTestFinished(() => node[Symbol.asyncDispose]());
      if (env.TLS_CERT_FILE !== undefined)
        writeFileSync(join(cluster.dir, id, 'clock-ahead-ms'), String(30 * 86_400_000));
      await node.start({ ready: false });
      return node;
    };
    const told = wrong.map(async ([variable, env, said = '']) => {
      const node = await fourth(`wrong-${variable}`, env);
      expect(await node.process?.ended).toBe(1);
      const log = readFileSync(node.logFile, 'utf8').trim();
      expect(log).toMatch(new RegExp(`^ledger-trust: [^\\n]*\\b${variable}\\b[^\\n]*${said}[^\\n]*$`));
    });
    await Promise.all(told);
    const url = `redis://nobody:hunter2hunter2@127.0.0.1:${redisPort}`;
    const node = await fourth('wrong-password', { REDIS_URL: url, LOG_LEVEL: 'debug' });
    await expect.poll(() => readFileSync(node.logFile, 'utf8'), { timeout: 20_000 }).toContain('WRONGPASS');
    await node.kill();
    expect(readFileSync(node.logFile, 'utf8')).not.toContain('hunter2');
    const { members } = await nodeAt(0).view();
    expect(members.map(({ id }) => id)).toEqual(['node-1', 'node-2', 'node-3']);
    await expectAllWell();
  }, 60_000);
});

/** Throws what a client asks again after, for `askedAgain`. */
function notRetryable(answer: RestAnswer): RestAnswer {
  if (isRetryable(answer.raw)) throw new Error(answer.raw);
  return answer;
}
