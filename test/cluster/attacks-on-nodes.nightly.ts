import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { isoTime } from '../../src/domain/values/time.ts';
import { MasterService } from '../../src/gen/svc/v1/masters_pb.ts';
import { limits } from '../../src/runtime/limits/limits.ts';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { ownCertificate } from '../support/certificate.ts';
import { callGrpc, grpcClient } from '../support/grpc-client.ts';
import { append, eventsOf, newParty, signedBy } from '../support/parties.ts';
import { done, rest } from '../support/parties-rest.ts';
import { openSocket } from '../support/raw-http.ts';
import { type AttackedCluster, portOf, startAttackedCluster } from './rig/attacked-cluster.ts';
import { shardCount } from './rig/cluster-under-test.ts';
import { layOutNode, type NodeUnderTest } from './rig/node-under-test.ts';
import { withRetries } from './rig/with-retries.ts';

await describeOnCassandra('a cluster of three with silent connections, a wrong clock and wrong settings', (address) => {
  let attacked: AttackedCluster;
  beforeAll(async () => {
    attacked = await startAttackedCluster(address);
  }, 120_000);
  afterAll(() => attacked?.[Symbol.asyncDispose](), 60_000);

  test('256 silent connections to each internal port do not block others, and end by themselves', async () => {
    const { cluster, expectAllWell } = attacked;
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
      // One address may have 64 connections: the newest ones.
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

  test.each([
    ['an hour ahead', () => 3_600_000, 'ms off the clock of the store'],
    ['an hour behind', () => -3_600_000, 'ms off the clock of the store'],
    ['in the year 11026', () => 285_800_000_000_000 - Date.now(), 'out of range (the year 11026)'],
  ])(
    'a node whose clock is %s gives its shards away and writes nothing',
    async (_, aheadMs, reason) => {
      const { cluster, expectAllWell, note, pairOf } = attacked;
      const node = cluster.nodeAt(1);
      const pair = pairOf(node);
      await expect
        .poll(async () => (await cluster.ownerOf(pair.order.ledgerId))?.id, { timeout: 15_000 })
        .toBe(node.id);
      const file = join(cluster.dir, node.id, 'clock-ahead-ms');
      const holds = async () => [...(await cluster.owners()).values()].filter((owner) => owner === node.id).length;
      const register = async () => {
        const body = { organization_name: 'Acme', contact_email: 'dev@example.com', accept_terms: true };
        return (await rest(node.baseUrl, 'POST', '/v1/developer/register', { body })).code;
      };
      const events = () => eventsOf(cluster.nodeAt(0).baseUrl, pair.order.buyer, pair.order.ledgerId);
      // For a second. The node seals nothing for some seconds after its clock was mended.
      const delegate = await withRetries(() => newParty(cluster.nodeAt(0).baseUrl));
      await withRetries(() => {
        const body = { actor_id: delegate.actorId, access: 'write', expires_at: isoTime(Date.now() + 1_000) };
        const path = `/v1/traceledger/master/${pair.master.uuid}/access`;
        return done(cluster.nodeAt(0).baseUrl, 'POST', path, pair.order.buyer, body);
      });
      const noteAsDelegate = async () =>
        (await append({ ...pair.master, base: node.baseUrl }, delegate, 'LATE', {})).code;
      await expect.poll(noteAsDelegate, { timeout: 10_000 }).toBe('access_expired');
      const [beganMs, eventsBefore] = [Date.now(), (await events()).length];
      writeFileSync(file, String(aheadMs()));
      onTestFinished(() => writeFileSync(file, '0'));
      await expect
        .poll(() => node.readiness(), { timeout: 2_000 })
        .toMatchObject({ status: 503, text: expect.stringContaining(reason) });
      expect(await cluster.nodeAt(0).readiness()).toMatchObject({ status: 200 });
      expect(await register()).toBe('unavailable');
      // The node refuses the call at once. It forwards appends as soon as other nodes have its shards.
      expect(['unavailable', 'access_expired']).toContain(await noteAsDelegate());
      await expect.poll(holds, { timeout: 10_000 }).toBe(0);
      const forwarded = async () => (await note(node, pair)).status;
      await expect.poll(forwarded, { timeout: 10_000 }).toBe(200);
      expect(await noteAsDelegate()).toBe('access_expired');
      expect((await cluster.owners()).size).toBe(shardCount);
      const late = (await events()).slice(eventsBefore);
      expect(late.length).toBeGreaterThan(0);
      for (const { created_at } of late) {
        expect(Date.parse(String(created_at))).toBeGreaterThan(beganMs - 1_000);
        expect(Date.parse(String(created_at))).toBeLessThan(Date.now() + 60_000);
      }
      expect(await register()).toBe('unavailable');
      writeFileSync(file, '0');
      await expect.poll(() => node.readiness(), { timeout: 2_000 }).toMatchObject({ status: 200 });
      expect(await register()).not.toBe('unavailable');
      await expect.poll(holds, { timeout: 15_000 }).toBeGreaterThan(shardCount / 6);
      await expectAllWell();
    },
    60_000,
  );

  /** Another node of the cluster, with further variables. The test ends it. */
  async function fourth(id: string, env: Readonly<Record<string, string>>): Promise<NodeUnderTest> {
    const { cluster } = attacked;
    const { REDIS_URL: _, ...common } = cluster.commonEnv;
    const redisPort = portOf(cluster.redis.current.url);
    const node = await layOutNode({ id, dir: cluster.dir, redisPort, env: { ...common, ...env } });
    onTestFinished(() => node[Symbol.asyncDispose]());
    return node;
  }

  test('a node with a wrong setting exits with one sentence and reveals no password', async () => {
    const { cluster, expectAllWell } = attacked;
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
    const told = wrong.map(async ([variable, env, said = '']) => {
      const node = await fourth(`wrong-${variable}`, env);
      if (env.TLS_CERT_FILE !== undefined)
        writeFileSync(join(cluster.dir, node.id, 'clock-ahead-ms'), String(30 * 86_400_000));
      await node.start({ ready: false });
      expect(await node.process?.ended).toBe(1);
      const log = readFileSync(node.logFile, 'utf8').trim();
      expect(log).toMatch(new RegExp(`^ledger-trust: [^\\n]*\\b${variable}\\b[^\\n]*${said}[^\\n]*$`));
    });
    await Promise.all(told);
    const url = `redis://nobody:hunter2hunter2@127.0.0.1:${portOf(cluster.redis.current.url)}`;
    const node = await fourth('wrong-password', { REDIS_URL: url, LOG_LEVEL: 'debug' });
    await node.start({ ready: false });
    await expect.poll(() => readFileSync(node.logFile, 'utf8'), { timeout: 20_000 }).toContain('WRONGPASS');
    await node.kill();
    expect(readFileSync(node.logFile, 'utf8')).not.toContain('hunter2');
    const { members } = await cluster.nodeAt(0).view();
    expect(members.map(({ id }) => id)).toEqual(['node-1', 'node-2', 'node-3']);
    await expectAllWell();
  }, 60_000);

  test('a node with a certificate ends TLS handshakes after 10 s, and answers and forwards meanwhile', async () => {
    const { cluster, expectAllWell, notesIn, pairOf } = attacked;
    const { cert, key } = ownCertificate();
    const files = { TLS_CERT_FILE: join(cluster.dir, 'tls.pem'), TLS_KEY_FILE: join(cluster.dir, 'tls.key') };
    writeFileSync(files.TLS_CERT_FILE, cert);
    writeFileSync(files.TLS_KEY_FILE, key);
    const node = await fourth('with-certificate', files);
    await node.start();
    const ports = [portOf(node.baseUrl), portOf(node.grpcUrl)];
    const began = performance.now();
    const sockets = ports.flatMap((port) =>
      Array.from({ length: 100 }, (_, at) => {
        const socket = openSocket(port).resume();
        onTestFinished(() => void socket.destroy());
        // The head of a ClientHello whose rest never comes.
        if (at % 2 === 0) socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1]));
        return socket;
      }),
    );
    const areOpen = () => sockets.filter(({ readyState }) => readyState === 'open').length;
    await expect.poll(areOpen).toBe(sockets.length);

    const secure = connectTls({ port: ports[0], host: '127.0.0.1', ca: cert, servername: 'localhost' });
    secure.write('GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    const answered = await text(secure);
    expect(answered).toMatch(/^HTTP\/1\.1 200 /);
    expect(answered).toMatch(/^strict-transport-security: max-age=31536000\r$/im);
    const client = grpcClient(`127.0.0.1:${ports[1]}`, cert);
    onTestFinished(() => client.close());
    for (const owner of cluster.nodes) {
      const { order, master } = pairOf(owner);
      const payload = { note: `to ${owner.id} over TLS` };
      const request = { uuid: master.uuid, eventType: 'NOTED', payload: JSON.stringify(payload) };
      const headers = signedBy(order.buyer, 'NOTED', order.ledgerId, { ...payload, ...master.injected });
      const { error } = await callGrpc(client, MasterService.method.appendEvent, request, headers);
      expect(error).toBeNull();
      expect(await notesIn(owner, pairOf(owner))).toContain(payload.note);
    }

    expect(areOpen()).toBe(sockets.length);
    await expect.poll(areOpen, { timeout: 15_000, interval: 100 }).toBe(0);
    expect(performance.now() - began).toBeGreaterThan(limits.tlsHandshakeTimeoutMs - 1_000);
    expect(performance.now() - began).toBeLessThan(limits.tlsHandshakeTimeoutMs + 5_000);
    expect((await node.terminate()).code).toBe(0);
    await expectAllWell();
  }, 60_000);
});
