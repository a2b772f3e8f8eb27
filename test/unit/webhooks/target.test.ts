import { describe, expect, test } from 'vitest';
import {
  addressKind,
  checkTarget,
  mayConnect,
  type TargetPolicy,
} from '../../../src/service/webhooks/webhook-target.ts';

const production: TargetPolicy = { production: true, ownPorts: () => new Set(), ownAddresses: () => [] };
const development: TargetPolicy = {
  production: false,
  ownPorts: () => new Set([8080, 50_051, 9100]),
  ownAddresses: () => [],
};

/** The ways to write a forbidden address. */
const forbidden = [
  ['unspecified', '0.0.0.0'],
  ['this network', '0.1.2.3'],
  ['private 10/8', '10.0.0.1'],
  ['private 172.16/12', '172.16.0.1'],
  ['private 172.16/12, its end', '172.31.255.255'],
  ['private 192.168/16', '192.168.1.1'],
  ['carrier-grade NAT', '100.64.0.1'],
  ['link-local, metadata', '169.254.169.254'],
  ['IETF protocols', '192.0.0.8'],
  ['documentation 1', '192.0.2.1'],
  ['documentation 2', '198.51.100.7'],
  ['documentation 3', '203.0.113.9'],
  ['6to4 relay', '192.88.99.1'],
  ['benchmarks', '198.18.0.1'],
  ['multicast', '224.0.0.1'],
  ['reserved', '240.0.0.1'],
  ['broadcast', '255.255.255.255'],
  ['unspecified IPv6', '::'],
  ['unique local', 'fd00::1'],
  ['unique local fc', 'fc00::1'],
  ['link-local IPv6', 'fe80::1'],
  ['link-local IPv6 with a zone', 'fe80::1%eth0'],
  ['site-local', 'fec0::1'],
  ['multicast IPv6', 'ff02::1'],
  ['mapped loopback', '::ffff:127.0.0.1'],
  ['mapped loopback in hex', '::ffff:7f00:1'],
  ['mapped private', '::ffff:10.0.0.1'],
  ['mapped public', '::ffff:8.8.8.8'],
  ['compatible loopback', '::127.0.0.1'],
  ['translated (RFC 6145)', '::ffff:0:127.0.0.1'],
  ['NAT64 of loopback', '64:ff9b::7f00:1'],
  ['NAT64 of a public address', '64:ff9b::8.8.8.8'],
  ['local NAT64', '64:ff9b:1::1'],
  ['6to4 of loopback', '2002:7f00:1::'],
  ['6to4 of a private address', '2002:a00:1::1'],
  ['Teredo', '2001:0:4136:e378:8000:63bf:3fff:fdd2'],
  ['ORCHID', '2001:20::1'],
  ['documentation IPv6', '2001:db8::1'],
  ['documentation IPv6, new', '3fff::1'],
  ['discard', '100::1'],
  ['segment routing', '5f00::1'],
  ['outside global unicast', '4000::1'],
  ['no address', 'localhost'],
  ['empty', ''],
] as const;

describe('addresses', () => {
  test.each(forbidden)('%s is forbidden: %s', (_name, address) => {
    expect(addressKind(address)).toBe('forbidden');
    for (const policy of [production, development])
      for (const protocol of ['http:', 'https:']) expect(mayConnect(policy, protocol, address, 443)).toBe(false);
  });

  test.each(['127.0.0.1', '127.1.2.3', '127.255.255.255', '::1'])(
    '%s is loopback, in development mode alone',
    (address) => {
      expect(addressKind(address)).toBe('loopback');
      for (const protocol of ['http:', 'https:']) {
        expect(mayConnect(development, protocol, address, 4000)).toBe(true);
        expect(mayConnect(production, protocol, address, 4000)).toBe(false);
      }
    },
  );

  test.each(['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700:4700::1111', '2a00:1450::1'])(
    '%s is public, for https alone',
    (address) => {
      for (const policy of [production, development]) {
        expect(mayConnect(policy, 'https:', address, 443)).toBe(true);
        expect(mayConnect(policy, 'http:', address, 80)).toBe(false);
      }
    },
  );

  test.each(['8.8.8.8', '2606:4700:4700::1111', '127.0.0.1'])(
    '%s: the default ports of Redis and Cassandra are refused at every address',
    (address) => {
      for (const policy of [production, development])
        for (const port of [6379, 6380, 16_379, 26_379, 7000, 7001, 7199, 9042, 9142])
          expect(mayConnect(policy, 'https:', address, port)).toBe(false);
    },
  );

  test('the service’s own ports are refused on its machine’s public addresses, and allowed elsewhere', () => {
    const ports = {
      ownPorts: () => new Set([443, 8080]),
      ownAddresses: () => ['8.8.8.8', '2606:4700:4700:0::1111', 'fe80::1%eth0'],
    };
    for (const mode of [production, development]) {
      const policy = { ...mode, ...ports };
      for (const own of ['8.8.8.8', '2606:4700:4700::1111', '2606:4700:4700:0:0:0:0:1111'])
        for (const port of [443, 8080]) expect(mayConnect(policy, 'https:', own, port)).toBe(false);
      for (const address of ['8.8.4.4', '2606:4700:4700::1112']) {
        expect(mayConnect(policy, 'https:', address, 443)).toBe(true);
        expect(mayConnect(policy, 'https:', address, 8080)).toBe(true);
      }
      expect(mayConnect(policy, 'https:', '8.8.8.8', 8443)).toBe(true);
    }
  });

  test.each([8080, 50_051, 9100, 6379, 9042, 7000, 7199])('port %i on loopback is the service’s own', (port) => {
    expect(mayConnect(development, 'http:', '127.0.0.1', port)).toBe(false);
    expect(mayConnect(development, 'http:', '::1', port)).toBe(false);
  });
});

const code = (url: unknown, policy: TargetPolicy): string => {
  try {
    checkTarget('url', url, policy);
    return 'taken';
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe('URLs at creation, in production mode', () => {
  const hosts = [
    ...['127.0.0.1', '127.1', '0x7f000001', '2130706433', '0177.0.0.1', '017700000001', '127.0.0.1.', '①②⑦.⓪.⓪.①'],
    ...['[::1]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '0.0.0.0', '[::]'],
    ...['localhost', 'localhost.', 'LOCALHOST', 'a.localhost', '169.254.169.254', '10.0.0.1:8443', '8.8.8.8:6379'],
    ...['[2606:4700::1]:9042', 'user@hooks.example', 'user:secret@hooks.example', '@hooks.example'],
  ];
  const schemes = ['http://hooks.example/a', 'ftp://hooks.example/', 'file:///etc/passwd', 'gopher://hooks.example/'];
  const forms = ['javascript:alert(1)', '//hooks.example/', 'https:hooks.example', 'https://', '', null, 5];
  const characters = ['/a b', '\\@127.0.0.1/', '/\n', `/${'a'.repeat(2_048)}`].map(
    (end) => `https://hooks.example${end}`,
  );
  const metadata = 'https://169.254.169.254/latest/meta-data/';
  test.each([...hosts.map((host) => `https://${host}/`), metadata, ...schemes, ...forms, ...characters])(
    '%s is refused',
    (url) => {
      expect(code(url, production)).toBe('invalid_argument');
    },
  );

  test.each([
    'https://hooks.example/a?b=c',
    'https://8.8.8.8:8443/',
    'https://[2606:4700::1]/',
    'https://hooks.example.',
  ])('%s is taken, as it is written', (url) => {
    expect(checkTarget('url', url, production)).toBe(url);
  });
});

describe('URLs at creation, in development mode', () => {
  test.each([
    'http://127.0.0.1:4000/',
    'http://localhost:4000/',
    'https://localhost/',
    'http://[::1]:4000/',
    'https://hooks.example/',
  ])('%s is taken', (url) => {
    expect(code(url, development)).toBe('taken');
  });

  test.each([
    'http://8.8.8.8/',
    'http://10.0.0.1/',
    'http://0.0.0.0:4000/',
    'http://[::ffff:127.0.0.1]:4000/',
    'http://localhost:8080/v1/actors',
    'http://127.1:9100/metrics',
    'http://localhost.:50051/',
    'http://127.0.0.1:6379/',
    'http://[::1]:9042/',
  ])('%s is refused', (url) => {
    expect(code(url, development)).toBe('invalid_argument');
  });
});
