import { expect, test } from 'vitest';
import { backendPorts } from '../../cluster/backend-ports.ts';
import { mayConnect } from '../../src/service/webhook-target.ts';
import { cassandraSettings } from '../../src/store/cassandra/settings.ts';

const settings = (contactPoints: string) => cassandraSettings({ CASSANDRA_CONTACT_POINTS: contactPoints });

test.each([
  ['redis://redis:6379', 'cassandra:9042', [6379, 9042]],
  ['redis://user:secret@redis', 'one,two', [6379, 9042]],
  ['rediss://127.0.0.1:33111/2', '127.0.0.1:33222,127.0.0.2:33222', [33_111, 33_222]],
  ['redis://[::1]:33111', '[::1]:33222', [33_111, 33_222]],
])('a cluster’s Redis at %s and Cassandra at %s are no targets', (redisUrl, contactPoints, ports) => {
  const found = backendPorts({ redisUrl, cassandra: settings(contactPoints) });
  expect([...found]).toEqual(ports);
  const policy = { production: false, ownPorts: () => found };
  for (const port of ports) expect(mayConnect(policy, 'http:', '127.0.0.1', port)).toBe(false);
  expect(mayConnect(policy, 'http:', '127.0.0.1', 33_333)).toBe(true);
});
