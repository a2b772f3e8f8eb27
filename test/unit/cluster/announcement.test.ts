import { describe, expect, test } from 'vitest';
import { readAnnouncement } from '../../../cluster/placement/announcement.ts';
import { isNodeAddress, nodeTarget } from '../../../cluster/placement/node-address.ts';

const whole = {
  id: 'node-a',
  address: 'a.example:9100',
  ports: [8080, 50_051, 9100],
  startedAt: '2026-11-21T02:06:39.000Z',
  shardCount: 256,
  draining: false,
};

describe('the announcement of a node', () => {
  test('is read, also without ports and with unknown fields', () => {
    expect(readAnnouncement('node-a', JSON.stringify(whole))).toEqual(whole);
    const { ports: _, ...older } = whole;
    expect(readAnnouncement('node-a', JSON.stringify(older))).toEqual(older);
    expect(readAnnouncement('node-a', JSON.stringify({ ...whole, zone: 'b' }))).toEqual(whole);
  });

  test.each([
    '',
    '7',
    'null',
    '[]',
    '{',
    ...[{ id: 'node-b' }, { id: 7 }, { address: 7 }, { address: undefined }, { startedAt: 7 }].map((wrong) =>
      JSON.stringify({ ...whole, ...wrong }),
    ),
    JSON.stringify({ ...whole, startedAt: 'x'.repeat(65) }),
    JSON.stringify({ ...whole, address: 'unix:/var/run/redis.sock' }),
  ])('is ignored if it is %s', (text) => {
    expect(readAnnouncement('node-a', text)).toBeNull();
  });

  test('has no number of shards where that is no number', () => {
    for (const shardCount of ['256', null, { valueOf: 1, toString: 1 }])
      expect(readAnnouncement('node-a', JSON.stringify({ ...whole, shardCount }))?.shardCount).toBeNaN();
  });

  test('is ignored under an id that no node can have', () => {
    for (const id of ['', 'a b', 'x'.repeat(129), 'a\n'])
      expect(readAnnouncement(id, JSON.stringify({ ...whole, id }))).toBeNull();
  });

  test('is ignored with wrong ports, or too many', () => {
    const read = (ports: unknown) => readAnnouncement('node-a', JSON.stringify({ ...whole, ports }));
    expect(read([1, 65_535])?.ports).toEqual([1, 65_535]);
    for (const wrong of [0, -1, 65_536, 1.5, '8080', null]) expect(read([8080, wrong])).toBeNull();
    for (const wrong of [null, {}, '8080', Array(17).fill(1)]) expect(read(wrong)).toBeNull();
  });
});

test.each([
  'a:1',
  'node-1.svc_2.example.:65535',
  '10.0.0.1:9100',
  '[::1]:9100',
  '[fe80::1]:1',
  'unix:1',
  'localhost:80',
])('%s is an address, and becomes a name to look up', (address) => {
  expect(isNodeAddress(address)).toBe(true);
  expect(nodeTarget(address)).toBe(`dns:///${address}`);
});

test.each([
  ...[
    '',
    'a',
    ':1',
    'a:',
    'a:0',
    'a:01',
    'a:65536',
    'a:1 ',
    ' a:1',
    'a:1\n',
    'a:b',
    'a:1/x',
    '//a:1',
    'a@b:1',
    'a%b:1',
  ],
  ...[
    'unix:/tmp/x',
    'unix:///tmp/x',
    'dns:///a:1',
    'xds:a',
    'ipv4:1.2.3.4:5',
    'http://a:1',
    '::1:9100',
    '[::1]',
    '[a]:1',
  ],
  ...['[1.2.3.4]:1', '-a:1', 'a-:1', `${'a'.repeat(256)}:1`, 'ä:1'],
])('%j is no address', (address) => {
  expect(isNodeAddress(address)).toBe(false);
  expect(nodeTarget(address)).toBeNull();
});
