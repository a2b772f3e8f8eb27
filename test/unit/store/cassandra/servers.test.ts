import type cassandra from 'cassandra-driver';
import { describe, expect, test } from 'vitest';
import { StartError } from '../../../../src/runtime/start-error.ts';
import { checkServers } from '../../../../src/store/cassandra/session/server-checks.ts';
import { cassandraSettings, type Override } from '../../../../src/store/cassandra/session/settings.ts';

interface FakeServer {
  readonly version: string;
  /** As its table of settings has them. null: it has no such table. */
  readonly settings: Readonly<Record<string, string>> | null;
  readonly fails?: Error;
  readonly isUp?: boolean;
}

const fine: FakeServer = { version: '5.0.6', settings: { paxos_variant: 'v2', commitlog_sync: 'batch' } };
/** Without a setting of Paxos. */
const old: FakeServer = { version: '4.0.17', settings: { commitlog_sync: 'batch' } };
const older: FakeServer = { version: '3.11.19', settings: null };

/** The sentence that an operator reads, or `fine`. */
async function sentenceOf(servers: readonly FakeServer[], allow: readonly Override[] = []): Promise<string> {
  const hosts = servers.map(({ isUp = true }, at) => ({ address: `10.0.0.${at}:9042`, isUp: () => isUp }));
  const execute = async (cql: string, _: unknown, { host }: { readonly host: (typeof hosts)[number] }) => {
    const { version, settings, fails } = servers[hosts.indexOf(host)] ?? fine;
    if (fails !== undefined) throw fails;
    if (cql.endsWith('FROM system.local')) return { rows: [{ release_version: version }] };
    if (settings === null) throw new TypeError('keyspace system_views does not exist');
    return { rows: Object.entries(settings).map(([name, value]) => ({ name, value })) };
  };
  const client = { hosts: { values: () => hosts }, execute } as unknown as cassandra.Client;
  const settings = cassandraSettings({ CASSANDRA_CONTACT_POINTS: '10.0.0.0', CASSANDRA_ALLOW: allow.join(',') });
  return checkServers(client, settings).then(
    () => 'fine',
    (error: unknown) => (error instanceof StartError ? error.message : `not a StartError: ${error}`),
  );
}

describe('a node of Cassandra', () => {
  test.each(['4.1.0', '4.1-beta1', '4.10.0', '5.0.6', '5.1-SNAPSHOT', '10.0.0'])(
    'of version %s with Paxos v2 and a batch commit log is accepted',
    async (version) => {
      expect(await sentenceOf([fine, { ...fine, version }])).toBe('fine');
    },
  );

  test.each(['4.0.17', '4.0-rc1'])(
    'of version %s with Paxos v1 only is refused unless it is allowed',
    async (version) => {
      expect(await sentenceOf([fine, { ...old, version }])).toBe(
        `Cassandra at 10.0.0.1:9042 is of version ${version}, which has Paxos v1 alone: take 4.1 or a later one; or allow it by CASSANDRA_ALLOW=paxos-v1.`,
      );
      expect(await sentenceOf([fine, { ...old, version }], ['paxos-v1'])).toBe('fine');
      expect(await sentenceOf([{ ...old, version, isUp: false }, fine])).toBe('fine');
    },
  );

  test.each(['3.11.19', '3.0.32', '2.2.19'])(
    'of version %s without readable settings is refused for good',
    async (version) => {
      for (const allow of [[], ['paxos-v1'], ['paxos-v1', 'periodic-commit-log']] as const)
        expect(await sentenceOf([fine, { ...older, version }], allow)).toBe(
          `Cassandra at 10.0.0.1:9042 is of version ${version}, which has Paxos v1 alone and does not tell its settings: take 4.1 or a later one.`,
        );
      expect(await sentenceOf([{ ...older, version, isUp: false }, fine])).toBe('fine');
    },
  );

  test.each(['v1', 'V1', 'v1_without_linearizable_reads_or_rejected_writes'])(
    'with Paxos %s is refused',
    async (variant) => {
      const server = { ...fine, settings: { ...fine.settings, paxos_variant: variant } };
      expect(await sentenceOf([server])).toContain('set paxos_variant: v2');
      expect(await sentenceOf([server], ['paxos-v1'])).toBe('fine');
    },
  );

  test('that does not answer in time is retried, with one sentence', async () => {
    expect(await sentenceOf([{ ...fine, fails: new Error('did not reply before timeout 10000 ms') }])).toBe(
      'Cassandra was reached, but did not answer (did not reply before timeout 10000 ms): see whether its nodes have the processor and memory they need, then try again.',
    );
  });

  test('with a periodic commit log is refused, whatever Paxos it is allowed', async () => {
    const server = { ...old, settings: { commitlog_sync: 'periodic' } };
    expect(await sentenceOf([server], ['paxos-v1'])).toContain('set commitlog_sync: batch');
    expect(await sentenceOf([server], ['paxos-v1', 'periodic-commit-log'])).toBe('fine');
    expect(await sentenceOf([old], ['paxos-v1'])).toBe('fine');
    expect(await sentenceOf([old], ['periodic-commit-log'])).toContain('Paxos v1 alone');
  });
});
