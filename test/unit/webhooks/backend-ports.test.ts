import { expect, test } from 'vitest';
import { ownBackendPorts } from '../../../cluster/config.ts';
import { memberPorts } from '../../../cluster/placement/members.ts';
import { readConfig } from '../../../src/node/config.ts';
import { mayConnect } from '../../../src/service/webhooks/webhook-target.ts';
import { cassandraSettings } from '../../../src/store/cassandra/session/settings.ts';

const settings = (contactPoints: string) => cassandraSettings({ CASSANDRA_CONTACT_POINTS: contactPoints });

test.each([
  ['redis://redis:6379', 'cassandra:9042', [6379, 9042]],
  ['redis://user:secret@redis', 'one,two', [6379, 9042]],
  ['rediss://127.0.0.1:33111/2', '127.0.0.1:33222,127.0.0.2:33222', [33_111, 33_222]],
  ['redis://[::1]:33111', '[::1]:33222', [33_111, 33_222]],
])('a cluster’s Redis at %s and Cassandra at %s are no targets', (redisUrl, contactPoints, ports) => {
  const found = ownBackendPorts({ redisUrl, cassandra: settings(contactPoints) });
  expect([...found]).toEqual(ports);
  const policy = { production: false, ownPorts: () => found, ownAddresses: () => [] };
  for (const port of ports) expect(mayConnect(policy, 'http:', '127.0.0.1', port)).toBe(false);
  expect(mayConnect(policy, 'http:', '127.0.0.1', 33_333)).toBe(true);
});

test('the ports of other nodes are those that they announce, and the one at which they are reached', () => {
  const node = { startedAt: '', shardCount: 4, draining: false, order: null };
  const members = [
    { ...node, id: 'a', address: '127.0.0.1:33001', ports: [33_002, 33_003, 33_001] },
    { ...node, id: 'b', address: '[::1]:33004' },
    { ...node, id: 'c', address: 'node-c' },
  ];
  expect(new Set(memberPorts(members))).toEqual(new Set([33_001, 33_002, 33_003, 33_004]));
});

test('further ports are closed by name', () => {
  expect(readConfig({}).webhookClosedPorts).toEqual([]);
  expect(readConfig({ WEBHOOK_CLOSED_PORTS: ' 5432, 7010,' }).webhookClosedPorts).toEqual([5_432, 7_010]);
  for (const wrong of ['0', '65536', '-1', '80;81', 'postgres', '1e3', '0x50'])
    expect(() => readConfig({ WEBHOOK_CLOSED_PORTS: wrong })).toThrow(/^Set WEBHOOK_CLOSED_PORTS to ports/);
});
