import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { describe, expect, test } from 'vitest';
import { addClusterCommands } from '../../../cluster/cli/cluster-commands.ts';
import { advertisedAddress, readClusterConfig } from '../../../cluster/config.ts';
import type { LeaseServer } from '../../../cluster/placement/lease-server.ts';
import type { Member, MemberBoard } from '../../../cluster/placement/members.ts';
import { defaultTimings } from '../../../cluster/placement/timings.ts';
import { clusterSettings } from '../../../cluster/settings.ts';
import { shardOf } from '../../../src/actors/routing/shard.ts';
import { ConfigError } from '../../../src/runtime/start-error.ts';
import { ledgerId } from '../../support/commands.ts';
import { suiteDir } from '../../support/running-node.ts';

const folder = suiteDir();
const pem = join(folder, 'some.pem');
writeFileSync(pem, 'PEM', { mode: 0o600 });

const least = {
  REDIS_URL: 'redis://redis:6379',
  CASSANDRA_CONTACT_POINTS: 'cassandra:9042',
  AUTHORITY_KEY_FILE: 'a',
  SECRETS_KEY_FILE: 's',
  CLUSTER_SECRET: '0123456789abcdef',
};
const ofLog = { LOG_ORIGIN: 'ledger.example/v1', LOG_KEY_FILE: 'l' };
const certificates = { CLUSTER_TLS_CA_FILE: pem, CLUSTER_TLS_CERT_FILE: pem, CLUSTER_TLS_KEY_FILE: pem };

describe('the configuration of a clustered node', () => {
  test('needs the least variables only, and has defaults for the others', () => {
    const config = readClusterConfig(least);
    expect(config).toMatchObject({ placement: 'placement', timings: defaultTimings, peers: { tls: null } });
    expect(config.node).toMatchObject({ opsHost: '0.0.0.0', opsPort: 9100 });
    expect(config.cassandra.contactPoints).toEqual(['cassandra:9042']);
    expect(readClusterConfig(least).nodeId).not.toBe(config.nodeId);
  });

  test('uses the internal port as the port of operations', () => {
    const { node, advertise } = readClusterConfig({ ...least, INTERNAL_HOST: '10.0.0.7', INTERNAL_PORT: '7000' });
    expect([node.opsHost, node.opsPort, advertise]).toEqual(['10.0.0.7', 7_000, '10.0.0.7']);
  });

  // Other wrong values: test/unit/node/config-at-start.test.ts.
  test.each([
    ['REDIS_URL', { REDIS_URL: '' }],
    ['CASSANDRA_CONTACT_POINTS', { CASSANDRA_CONTACT_POINTS: '' }],
    ['AUTHORITY_KEY_FILE', { AUTHORITY_KEY_FILE: '' }],
    ['SECRETS_KEY_FILE', { SECRETS_KEY_FILE: '' }],
    ['CLUSTER_TLS_KEY_FILE', { ...certificates, CLUSTER_TLS_KEY_FILE: '' }],
    ['CLUSTER_SECRET', { CLUSTER_SECRET: '', CLUSTER_SECRET_FILE: pem }],
    ['CLUSTER_TLS_CA_FILE', { SVC_MODE: 'production', TLS_TERMINATED: '1', ...ofLog }],
  ])('is refused with the name of %s if it is missing or too short', (name, wrong) => {
    expect(() => readClusterConfig({ ...least, ...wrong })).toThrow(name);
  });

  const production = {
    ...least,
    ...certificates,
    SVC_MODE: 'production',
    TLS_TERMINATED: '1',
    ...ofLog,
  };

  test('needs only certificates in production, on any address', () => {
    const { node, peers } = readClusterConfig({ ...production, CLUSTER_SECRET: undefined, OPS_HOST: '203.0.113.7' });
    expect(node.opsHost).toBe('0.0.0.0');
    expect(peers.secret).toBeNull();
    expect(peers.tls?.ca.toString()).toBe('PEM');
  });

  test.each([
    'CLUSTER_TLS_KEY_FILE',
    'CASSANDRA_PASSWORD_FILE',
    'CLUSTER_SECRET_FILE',
    'AUTHORITY_KEY_FILE',
    'LOG_KEY_FILE',
  ])('is refused in production if every user of the machine can read %s', (name) => {
    const file = join(folder, name);
    writeFileSync(file, '0123456789abcdef');
    const env = { ...production, CASSANDRA_USERNAME: 'u', CASSANDRA_PASSWORD_FILE: pem, [name]: file };
    if (name === 'CLUSTER_SECRET_FILE') env.CLUSTER_SECRET = '';
    chmodSync(file, 0o644);
    expect(() => readClusterConfig(env)).toThrow(`close ${name} to other users (chmod 600 ${file})`);
    chmodSync(file, 0o600);
    expect(readClusterConfig(env).node.mode).toBe('production');
  });

  test('may have the secret in a file', () => {
    const file = join(folder, 'cluster.secret');
    writeFileSync(file, 'fedcba9876543210\n');
    const { peers } = readClusterConfig({ ...least, CLUSTER_SECRET: undefined, CLUSTER_SECRET_FILE: file });
    expect(peers).toEqual({ tls: null, secret: 'fedcba9876543210' });
  });

  test.each(['pässwort-0123456789', '0123456789\n0123456789'])(
    'is refused with certificates if its secret cannot be sent in a header, without its text: %j',
    (secret) => {
      const refused = () => readClusterConfig({ ...least, ...certificates, CLUSTER_SECRET: secret });
      expect(refused).toThrow('Set CLUSTER_SECRET to one line of ASCII characters');
      expect(refused).not.toThrow(secret.slice(-6));
      expect(readClusterConfig({ ...least, CLUSTER_SECRET: secret }).peers.secret).toBe(secret);
    },
  );

  test('renews shorter leases more often', () => {
    const { timings } = readClusterConfig({ ...least, LEASE_TTL_MS: '3000' });
    expect(timings).toMatchObject({ renewEveryMs: 1_000, marginMs: 500 });
  });

  test('has the given delay of a stop, or none', () => {
    expect(readClusterConfig(least).stopDelayMs).toBe(0);
    expect(readClusterConfig({ ...least, STOP_DELAY_SECONDS: '15' }).stopDelayMs).toBe(15_000);
  });

  test('has every variable in the table once', () => {
    const names = Object.values(clusterSettings).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of [...Object.keys(least), ...Object.keys(certificates), 'ADVERTISE_ADDRESS'])
      if (!/KEY_FILE$/.test(name) || name.startsWith('CLUSTER')) expect(names).toContain(name);
  });

  test.each([
    ['10.0.0.7', '10.0.0.7:9100'],
    ['node-a', 'node-a:9100'],
    ['node-a:7', 'node-a:7'],
    ['fd00::1', '[fd00::1]:9100'],
    ['[fd00::1]', '[fd00::1]:9100'],
    ['[fd00::1]:7', '[fd00::1]:7'],
  ])('advertises %s as %s', (given, address) => {
    expect(advertisedAddress(given, 9_100)).toBe(address);
  });
});

describe('the command `cluster`', () => {
  const member = (id: string, draining = false): Member => {
    return { id, address: `${id}:9100`, startedAt: '2026-11-21T00:00:00.000Z', shardCount: 4, draining, order: null };
  };

  async function run(args: readonly string[], members: readonly Member[] = [member('node-a'), member('node-b', true)]) {
    const orders: unknown[] = [];
    const board: MemberBoard = {
      announce: async () => null,
      withdraw: async () => {},
      list: async () => members,
      order: async (id, order) => {
        orders.push([id, order]);
        return id !== 'node-free';
      },
    };
    const owners = new Map([
      [0, 'node-a'],
      [1, 'node-a'],
      [3, 'node-gone'],
    ]);
    const leases: LeaseServer = {
      acquire: async () => ({ held: true }),
      renew: async () => new Set(),
      release: async () => {},
      owner: async (shard) => owners.get(shard) ?? null,
      owners: async () => owners,
    };
    let said = '';
    const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
    addClusterCommands(program, {
      env: {},
      print: (text) => {
        said += text;
      },
      open: async () => ({ board, leases, [Symbol.asyncDispose]: async () => {} }),
    });
    await program.parseAsync(['cluster', ...args], { from: 'user' });
    return { said, orders };
  }

  test('shows the nodes with their shards, and the number of free shards', async () => {
    const { said } = await run(['status']);
    expect(said).toMatch(/node-a +node-a:9100 +serving +2 /);
    expect(said).toMatch(/node-b +node-b:9100 +stopping +0 /);
    expect(said).toMatch(/4 shards, 1 free, 1 of nodes that are gone/);
  });

  test('shows the owners of all shards, and of a ledger', async () => {
    expect((await run(['shards'])).said).toBe('0\tnode-a\n1\tnode-a\n2\t-\n3\tnode-gone\n');
    expect((await run(['who-owns', ledgerId])).said).toMatch(new RegExp(`^shard ${shardOf(ledgerId, 4)}: `));
    await expect(run(['who-owns', 'PO-1'])).rejects.toThrow('UUID');
  });

  test('gives orders to nodes and takes them back', async () => {
    expect((await run(['drain', 'node-a'])).orders).toEqual([['node-a', 'draining']]);
    expect((await run(['cordon', 'node-a'])).orders).toEqual([['node-a', 'cordoned']]);
    const { said, orders } = await run(['uncordon', 'node-gone']);
    expect([said, orders]).toEqual(['node-gone takes shards again\n', [['node-gone', null]]]);
  });

  test('refuses to take back an order that was not given', async () => {
    await expect(run(['uncordon', 'node-free'])).rejects.toThrow('no order stands for node-free');
    await expect(run(['uncordon', 'node-free'])).rejects.toBeInstanceOf(ConfigError);
  });

  test('refuses to drain an unknown node, and reports a cluster without nodes', async () => {
    await expect(run(['drain', 'node-z'])).rejects.toBeInstanceOf(ConfigError);
    await expect(run(['status'], [])).rejects.toThrow('REDIS_URL');
  });
});
