import { afterAll, describe, expect, test } from 'vitest';
import { dnsLookup } from '../../../src/webhooks/post/name-lookup.ts';
import { type DnsRecord, startDnsServer } from '../../support/dns-server.ts';
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

// In development mode loopback stands for the public address of a receiver; a private address is refused in both modes.
const allowed = '127.0.0.1';
const privateAddress = '10.1.2.3';
const refused = { kind: 'failed', fault: 'forbidden_address' };
const answered = { kind: 'answered', status: 200 };

const a = (name: string, data: string, ttl = 0): DnsRecord => ({ name, type: 'A', ttl, data });
const aaaa = (name: string, data: string, ttl = 0): DnsRecord => ({ name, type: 'AAAA', ttl, data });
const cname = (name: string, data: string, ttl = 0): DnsRecord => ({ name, type: 'CNAME', ttl, data });

/** Waits until an answered connection is free for the next request, or closed. */
const aMoment = () => new Promise((resolve) => setTimeout(resolve, 50));

async function resolvedBy(answer: Parameters<typeof startDnsServer>[0]) {
  const dns = await startDnsServer(answer);
  servers.push(dns);
  return { dns, lookup: dnsLookup([dns.server]) };
}

describe('a name that its own name server moves', () => {
  test('to a private address is refused at the next attempt, with one look-up a connection', async () => {
    const listener = await countingListener();
    const { dns, lookup } = await resolvedBy((name, type, before) =>
      type === 'A' ? [a(name, before === 0 ? allowed : privateAddress)] : [],
    );
    const { post } = posterFor(development, lookup);
    const url = `http://hooks.example:${listener.port}/`;
    expect(await post(url)).toEqual(answered);
    expect(dns.asked('A hooks.example')).toBe(1);
    await aMoment();
    expect([await post(url), await post(url)]).toEqual([refused, refused]);
    expect([dns.asked('A hooks.example'), listener.connections()]).toEqual([3, 1]);
  });

  test('is sent to over the kept connection, to the address that was checked', async () => {
    let requests = 0;
    const hook = await receiver((_request, response) => {
      requests += 1;
      response.end();
    });
    const { lookup, dns } = await resolvedBy((name, type, before) =>
      type === 'A' ? [a(name, before === 0 ? allowed : privateAddress)] : [],
    );
    const { post } = posterFor(development, lookup);
    const url = `http://hooks.example:${hook.port}/`;
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await post(url)).toEqual(answered);
      await aMoment();
    }
    expect([requests, hook.sockets(), dns.asked('A hooks.example')]).toEqual([3, 1, 1]);
  });
});

describe('what a name server answers', () => {
  const answers: readonly [string, (name: string, type: 'A' | 'AAAA') => readonly DnsRecord[]][] = [
    ['a private address', (name, type) => (type === 'A' ? [a(name, privateAddress)] : [])],
    ['a mapped loopback address', (name, type) => (type === 'AAAA' ? [aaaa(name, '::ffff:127.0.0.1')] : [])],
    ['a mapped private address', (name, type) => (type === 'AAAA' ? [aaaa(name, '::ffff:10.1.2.3')] : [])],
    ['a translated address', (name, type) => (type === 'AAAA' ? [aaaa(name, '64:ff9b::7f00:1')] : [])],
    ['a unique local address', (name, type) => (type === 'AAAA' ? [aaaa(name, 'fd00::1')] : [])],
    ['the unspecified addresses', (name, type) => (type === 'A' ? [a(name, '0.0.0.0')] : [aaaa(name, '::')])],
    [
      'a private address of each family',
      (name, type) => (type === 'A' ? [a(name, privateAddress)] : [aaaa(name, 'fe80::1')]),
    ],
    [
      'a chain of names that ends at a private address',
      (name, type) =>
        type === 'A' ? [cname(name, 'a.example'), cname('a.example', 'b.example'), a('b.example', privateAddress)] : [],
    ],
    [
      'many private addresses',
      (name, type) => (type === 'A' ? Array.from({ length: 20 }, (_, at) => a(name, `10.0.0.${at}`)) : []),
    ],
  ];
  test.each(answers)('%s leads to no connection, in either mode', async (_name, answer) => {
    const listener = await countingListener();
    const { lookup } = await resolvedBy(answer);
    for (const policy of [development, production])
      for (const scheme of ['http', 'https'])
        expect(await posterFor(policy, lookup).post(`${scheme}://hooks.example:${listener.port}/`)).toEqual(refused);
    expect(listener.connections()).toBe(0);
  });

  test.each([
    ['loopback', (name: string, type: 'A' | 'AAAA') => (type === 'A' ? [a(name, '127.0.0.1')] : [aaaa(name, '::1')])],
    [
      'a chain of names that ends at loopback',
      (name: string, type: 'A' | 'AAAA') =>
        type === 'A' ? [cname(name, 'a.example'), a('a.example', '127.0.0.1')] : [],
    ],
  ])('%s leads to no connection in production mode', async (_name, answer) => {
    const listener = await countingListener();
    const { lookup } = await resolvedBy(answer);
    expect(await posterFor(production, lookup).post(`https://hooks.example:${listener.port}/`)).toEqual(refused);
    expect(listener.connections()).toBe(0);
    expect(await posterFor(development, lookup).post(`http://hooks.example:${listener.port}/`)).toEqual(answered);
  });

  test('mixed addresses: the forbidden ones among them are never tried', async () => {
    const listener = await countingListener(allowed);
    const { lookup } = await resolvedBy((name, type) =>
      type === 'A'
        ? [a(name, privateAddress), a(name, '169.254.169.254'), a(name, allowed)]
        : [aaaa(name, '::ffff:127.0.0.1'), aaaa(name, 'fd00::1')],
    );
    const began = performance.now();
    expect(await posterFor(development, lookup).post(`http://hooks.example:${listener.port}/`)).toEqual(answered);
    // A connection to a private address that is not there would have taken seconds.
    expect(performance.now() - began).toBeLessThan(1_500);
    expect(listener.connections()).toBe(1);
  });

  test('nothing, or a chain that leads nowhere, is an unknown name', async () => {
    const { lookup } = await resolvedBy((name) => (name === 'none.example' ? [] : [cname(name, 'a.example')]));
    const { post } = posterFor(development, lookup);
    for (const host of ['none.example', 'nowhere.example'])
      expect(await post(`http://${host}:4000/`)).toEqual({ kind: 'failed', fault: 'unknown_name' });
  });
});

test('a connection that is kept is not used any more once its address or port is forbidden', async () => {
  let requests = 0;
  const hook = await receiver((_request, response) => {
    requests += 1;
    response.end();
  });
  const closed = new Set<number>();
  const policy = { production: false, ownPorts: () => closed, ownAddresses: () => [] };
  const { post } = posterFor(policy, async () => [allowed]);
  const url = `http://hooks.example:${hook.port}/`;
  expect(await post(url)).toEqual(answered);
  await aMoment();
  expect(await post(url)).toEqual(answered);
  await aMoment();
  expect([requests, hook.sockets()]).toEqual([2, 1]);
  // A node of the service was started on that port meanwhile.
  closed.add(hook.port);
  expect([await post(url), await post(url)]).toEqual([refused, refused]);
  expect([requests, hook.sockets()]).toEqual([2, 1]);
});
