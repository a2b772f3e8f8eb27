import { createServer as createTcpServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, describe, expect, test } from 'vitest';
import { ownBackendPorts } from '../../../cluster/config.ts';
import { memberPorts } from '../../../cluster/placement/members.ts';
import { readConfig } from '../../../src/node/config.ts';
import type { TargetPolicy } from '../../../src/service/webhooks/webhook-target.ts';
import { cassandraSettings } from '../../../src/store/cassandra/session/settings.ts';
import { onLoopback } from '../../support/loopback.ts';
import {
  closeServers,
  countingListener,
  development,
  posterFor,
  production,
  receiver,
  servers,
} from '../../support/webhook-poster.ts';

afterAll(closeServers);

const refused = { kind: 'failed', fault: 'forbidden_address' };

describe('targets that are refused at connection', () => {
  const hosts = [
    '127.0.0.1',
    '127.1',
    '127.8.9.10',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    'localhost',
    'localhost.',
    'a.localhost',
    '0.0.0.0',
    '[::]',
  ];

  test.each(hosts)('%s: production mode makes no connection', async (host) => {
    const listener = await countingListener();
    for (const scheme of ['http', 'https']) {
      const { post } = posterFor(production);
      expect(await post(`${scheme}://${host}:${listener.port}/`)).toEqual(refused);
    }
    expect(listener.connections()).toBe(0);
  });

  test.each(['0.0.0.0', '[::]', '[::ffff:127.0.0.1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]'])(
    '%s: development mode makes none either',
    async (host) => {
      const listener = await countingListener();
      const { post } = posterFor(development);
      expect(await post(`http://${host}:${listener.port}/`)).toEqual(refused);
      expect(listener.connections()).toBe(0);
    },
  );

  test.each([
    ['loopback', ['127.0.0.1']],
    ['mapped loopback', ['::ffff:127.0.0.1']],
    ['IPv6 loopback', ['::1']],
    ['a private address', ['10.1.2.3']],
    ['the metadata service', ['169.254.169.254']],
    ['nothing that is an address', ['localhost']],
  ])('a name that resolves to %s', async (_name, addresses) => {
    const listener = await countingListener();
    const { post } = posterFor(production, async () => addresses);
    expect(await post(`https://hooks.example:${listener.port}/`)).toEqual(refused);
    expect(listener.connections()).toBe(0);
  });

  test('a name that moves from an allowed address to a private one gets no second connection', async () => {
    const private4 = Object.values(networkInterfaces())
      .flatMap((found) => found ?? [])
      .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
    // Without a network this machine has loopback addresses only.
    const elsewhere = private4 ?? '10.1.2.3';
    const listener = await countingListener();
    const answers = [['127.0.0.1'], [elsewhere], [elsewhere, '::ffff:127.0.0.1'], ['127.0.0.1']];
    let lookups = 0;
    const { post } = posterFor(development, async () => answers[lookups++] ?? []);
    const url = `http://hooks.example:${listener.port}/`;
    // One look-up a connection, and the socket goes to the address that it returned.
    expect([await post(url), lookups, listener.connections()]).toEqual([{ kind: 'answered', status: 200 }, 1, 1]);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([await post(url), lookups, listener.connections()]).toEqual([refused, 2, 1]);
    expect([await post(url), lookups, listener.connections()]).toEqual([refused, 3, 1]);
    expect([await post(url), lookups, listener.connections()]).toEqual([{ kind: 'answered', status: 200 }, 4, 2]);
  });

  test.each(['user@', 'user:secret@', 'hooks.example@', 'hooks.example:443@'])(
    'user info %s in the URL is not taken for the host',
    async (userInfo) => {
      const listener = await countingListener();
      const { post } = posterFor(production, async () => ['8.8.8.8']);
      for (const scheme of ['http', 'https'])
        expect(await post(`${scheme}://${userInfo}127.0.0.1:${listener.port}/`)).toEqual(refused);
      expect(listener.connections()).toBe(0);
    },
  );

  /** In development mode, at every name and address of this machine. */
  async function expectClosed(port: number, policy: TargetPolicy): Promise<void> {
    const { post } = posterFor(policy, async () => ['127.0.0.1', '::1']);
    for (const host of ['127.0.0.1', 'localhost', 'localhost.', '127.1', '2130706433', '[::1]', 'hooks.example'])
      for (const scheme of ['http', 'https']) expect(await post(`${scheme}://${host}:${port}/`)).toEqual(refused);
  }

  test.each([6379, 6380, 16_379, 26_379, 7000, 7001, 7199, 9042, 9142])(
    'port %i, a default port of Redis or Cassandra',
    async (port) => {
      // The connections of another program's port cannot be counted. An attempt would have had another result.
      const listener = await countingListener('::', port).catch(() => null);
      await expectClosed(port, development);
      expect(listener?.connections() ?? 0).toBe(0);
    },
  );

  const nowhere = { REDIS_URL: 'redis://redis', CASSANDRA_CONTACT_POINTS: 'cassandra' };
  const closedPorts = (port: number) => ({ WEBHOOK_CLOSED_PORTS: `4444, ${port}` });

  test.each([
    ['Redis', (port: number) => ({ REDIS_URL: `redis://127.0.0.1:${port}` })],
    ['Redis with TLS', (port: number) => ({ REDIS_URL: `rediss://user:secret@127.0.0.1:${port}/2` })],
    ['the bus of a Redis cluster', closedPorts],
    ['Sentinel', closedPorts],
    ['Cassandra between its nodes', closedPorts],
    ['Cassandra between its nodes with TLS', closedPorts],
    ['JMX of Cassandra', closedPorts],
    ['Cassandra', (port: number) => ({ CASSANDRA_CONTACT_POINTS: `localhost:${port}` })],
    [
      'Cassandra on several addresses',
      (port: number) => ({ CASSANDRA_CONTACT_POINTS: `127.0.0.2:${port},[::1]:${port}` }),
    ],
  ])('%s, on another port that the settings name', async (_name, settings) => {
    const listener = await countingListener();
    const env = { ...nowhere, ...settings(listener.port) };
    const { webhookClosedPorts } = readConfig(env);
    const found = ownBackendPorts({ redisUrl: env.REDIS_URL, cassandra: cassandraSettings(env) });
    const ownPorts = new Set([...webhookClosedPorts, ...found]);
    await expectClosed(listener.port, { production: false, ownPorts: () => ownPorts, ownAddresses: () => [] });
    expect(listener.connections()).toBe(0);
  });

  test.each([
    ['the internal port', (port: number) => ({ address: `127.0.0.1:${port}` })],
    ['the internal port at an IPv6 address', (port: number) => ({ address: `[::1]:${port}` })],
    ['the public ports', (port: number) => ({ address: 'node-2:9100', ports: [8080, port, 9100] })],
  ])('%s of another node', async (_name, told) => {
    const listener = await countingListener();
    const node = { id: 'node-2', startedAt: '', shardCount: 4, draining: false, order: null };
    const ownPorts = () => new Set(memberPorts([{ ...node, ...told(listener.port) }]));
    await expectClosed(listener.port, { production: false, ownPorts, ownAddresses: () => [] });
    expect(listener.connections()).toBe(0);
  });

  test('a port that is not named is open: the listeners above would have counted the connection', async () => {
    const listener = await countingListener();
    const { post } = posterFor(development);
    expect(await post(`http://localhost:${listener.port}/`)).toMatchObject({ kind: 'answered' });
    expect(listener.connections()).toBe(1);
  });

  test('of a name’s several addresses only those that are allowed are tried', async () => {
    const listener = await countingListener('127.0.0.1');
    const { post } = posterFor(development, async () => ['10.0.0.1', '::ffff:127.0.0.1', '127.0.0.1']);
    expect(await post(`http://hooks.example:${listener.port}/`)).toMatchObject({ kind: 'answered', status: 200 });
    expect(listener.connections()).toBe(1);
  });

  test('of a name’s many addresses four are tried', async () => {
    const listener = await countingListener('127.0.0.1');
    // Nothing listens there.
    const dead = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
    const behind = (count: number) => posterFor(development, async () => [...dead.slice(0, count), '127.0.0.1']).post;
    const url = `http://hooks.example:${listener.port}/`;
    expect(await behind(3)(url)).toEqual({ kind: 'answered', status: 200 });
    expect(await behind(4)(url)).toEqual({ kind: 'failed', fault: 'not_reached' });
    expect(listener.connections()).toBe(1);
  });

  test('of a name’s many addresses four are looked at, and none behind them is connected to', async () => {
    const listener = await countingListener('127.0.0.1');
    let checks = 0;
    const ownPorts = () => {
      checks += 1;
      return new Set<number>();
    };
    const policy = { ...development, ownPorts };
    const url = `http://hooks.example:${listener.port}/`;
    // Nothing listens at the first ones.
    const many = Array.from({ length: 4_000 }, (_, at) => `127.0.${2 + (at >> 8)}.${at & 0xff}`);
    const { post } = posterFor(policy, async () => [...many, '127.0.0.1']);
    expect(await post(url)).toEqual({ kind: 'failed', fault: 'not_reached' });
    expect(checks).toBe(4);
    const inside = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'];
    const behind = (count: number) => posterFor(policy, async () => [...inside.slice(0, count), '127.0.0.1']).post;
    expect(await behind(3)(url)).toEqual({ kind: 'answered', status: 200 });
    expect(await behind(4)(url)).toEqual(refused);
    expect(listener.connections()).toBe(1);
  });

  test('the service’s own ports, in development mode too', async () => {
    const listener = await countingListener();
    const policy = { production: false, ownPorts: () => new Set([listener.port]), ownAddresses: () => [] };
    for (const host of ['127.0.0.1', 'localhost', '[::1]', '127.1']) {
      const { post } = posterFor(policy);
      expect(await post(`http://${host}:${listener.port}/`)).toEqual(refused);
    }
    expect(listener.connections()).toBe(0);
  });

  test('a redirect is an answer and is not followed', async () => {
    const listener = await countingListener('127.0.0.1');
    for (const status of [301, 302, 303, 307, 308]) {
      const { url } = await receiver((_request, response) =>
        response.writeHead(status, { location: `http://127.0.0.1:${listener.port}/latest/meta-data/` }).end(),
      );
      const { post } = posterFor(development);
      expect(await post(url)).toEqual({ kind: 'answered', status });
    }
    expect(listener.connections()).toBe(0);
  });

  test('a socket that is connected to another address is closed before a byte is sent', async () => {
    let bytes = 0;
    const server = createTcpServer((socket) => {
      socket.on('data', (data) => {
        bytes += data.length;
      });
    });
    const port = await onLoopback(server);
    servers.push(server);
    // The policy changes between the choice of the address and the check of the socket.
    let asked = 0;
    const policy = {
      production: false,
      ownPorts: () => {
        asked += 1;
        return new Set(asked > 1 ? [port] : []);
      },
      ownAddresses: () => [],
    };
    const { post } = posterFor(policy);
    expect(await post(`http://127.0.0.1:${port}/`)).toEqual(refused);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([asked, bytes]).toEqual([2, 0]);
  });
});
