import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { describeOnCassandra } from '../support/backends/for-tests.ts';
import { append, eventsOf, newParty } from '../support/parties.ts';
import { done, expectRefused, rest } from '../support/parties-rest.ts';
import { type AttackedCluster, portOf, startAttackedCluster } from './rig/attacked-cluster.ts';
import { shardCount } from './rig/cluster-under-test.ts';
import { layOutNode, type NodeUnderTest } from './rig/node-under-test.ts';

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
  ])('a node whose clock is %s gives its shards away and writes nothing', async (_, aheadMs, reason) => {
    const { cluster, expectAllWell, note, pairOf } = attacked;
    const node = cluster.nodeAt(1);
    const pair = pairOf(node);
    await expect.poll(async () => (await cluster.ownerOf(pair.order.ledgerId))?.id, { timeout: 15_000 }).toBe(node.id);
    const file = join(cluster.dir, node.id, 'clock-ahead-ms');
    const holds = async () => [...(await cluster.owners()).values()].filter((owner) => owner === node.id).length;
    const register = async () => {
      const body = { organization_name: 'Acme', contact_email: 'dev@example.com', accept_terms: true };
      return (await rest(node.baseUrl, 'POST', '/v1/developer/register', { body })).code;
    };
    const delegate = await newParty(cluster.nodeAt(0).baseUrl);
    const expiresAt = Date.now() + 1_500;
    const noteAsDelegate = () => append({ ...pair.master, base: node.baseUrl }, delegate, 'LATE', {});
    const body = { actor_id: delegate.actorId, access: 'write', expires_at: new Date(expiresAt).toISOString() };
    const path = `/v1/traceledger/master/${pair.master.uuid}/access`;
    await done(cluster.nodeAt(0).baseUrl, 'POST', path, pair.order.buyer, body);
    expect((await noteAsDelegate()).status).toBe(200);
    await expect.poll(() => Date.now()).toBeGreaterThan(expiresAt);
    expectRefused(await noteAsDelegate(), 403, 'access_expired');
    const beganMs = Date.now();
    const eventsBefore = (await eventsOf(cluster.nodeAt(0).baseUrl, pair.order.buyer, pair.order.ledgerId)).length;
    writeFileSync(file, String(aheadMs()));
    onTestFinished(() => writeFileSync(file, '0'));
    await expect
      .poll(() => node.readiness(), { timeout: 2_000 })
      .toMatchObject({ status: 503, text: expect.stringContaining(reason) });
    expect(await cluster.nodeAt(0).readiness()).toMatchObject({ status: 200 });
    expect(await register()).toBe('unavailable');
    // The node refuses the call at once. It forwards appends as soon as other nodes have its shards.
    const refusedLate = async () => {
      const { code } = await noteAsDelegate();
      expect(['unavailable', 'access_expired']).toContain(code);
      return code;
    };
    await refusedLate();
    await expect.poll(holds, { timeout: 10_000 }).toBe(0);
    const forwarded = async () => (await note(node, pair)).status;
    await expect.poll(forwarded, { timeout: 10_000 }).toBe(200);
    expect(await refusedLate()).toBe('access_expired');
    expect((await cluster.owners()).size).toBe(shardCount);
    const events = await eventsOf(cluster.nodeAt(0).baseUrl, pair.order.buyer, pair.order.ledgerId);
    expect(events.length).toBeGreaterThan(eventsBefore);
    for (const { created_at } of events.slice(eventsBefore)) {
      expect(Date.parse(String(created_at))).toBeGreaterThanOrEqual(beganMs);
      expect(Date.parse(String(created_at))).toBeLessThan(Date.now() + 60_000);
    }
    expect(await register()).toBe('unavailable');
    writeFileSync(file, '0');
    await expect.poll(() => node.readiness(), { timeout: 2_000 }).toMatchObject({ status: 200 });
    expect(await register()).not.toBe('unavailable');
    await expect.poll(holds, { timeout: 15_000 }).toBeGreaterThan(shardCount / 6);
    await expectAllWell();
  }, 60_000);

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
    const { members } = await cluster.nodeAt(0).view();
    expect(members.map(({ id }) => id)).toEqual(['node-1', 'node-2', 'node-3']);
    await expectAllWell();
  }, 60_000);
});
