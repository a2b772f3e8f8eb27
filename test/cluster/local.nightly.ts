import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type LocalCluster, startLocalCluster } from '../../cluster/local/cluster.ts';
import type { Backend, CassandraAddress, RedisAddress } from '../support/backends/backend.ts';
import { backendsForTests, describeOn } from '../support/backends/for-tests.ts';
import { newClientOrder } from '../support/client-order.ts';
import { compileCache } from '../support/compile-cache.ts';
import { silentPort } from '../support/raw-http.ts';
import { suiteDir } from '../support/running-node.ts';

const dir = suiteDir();

const backends = backendsForTests();
const [redis, cassandra] = await Promise.all([backends.redis(), backends.cassandra()]);

interface Both {
  readonly redis: RedisAddress;
  readonly cassandra: CassandraAddress;
}
const both: Backend<Both> =
  redis.kind === 'missing'
    ? redis
    : cassandra.kind === 'missing'
      ? cassandra
      : { ...cassandra, address: { redis: redis.address, cassandra: cassandra.address } };

/** One keyspace for all tests, because making its tables takes longest. */
const name = `local_${process.pid}`;
const start = (at: Both, place: string, more: { env?: Record<string, string>; port?: number } = {}) => {
  const { PATH = '', HOME = '' } = process.env;
  return startLocalCluster({
    dir: join(dir, place),
    nodes: 3,
    cassandraNodes: 1,
    port: more.port ?? 0,
    grpcPort: 0,
    env: { PATH, HOME, ...compileCache, LOG_LEVEL: 'warn', CLUSTER_NAME: name, ...more.env },
    backends: { redisUrl: at.redis.url, contactPoints: at.cassandra.contactPoints, allow: at.cassandra.allow },
    keyspace: name,
  });
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

describeOn('a cluster on this machine', 'Cassandra with Redis', both, (at) => {
  test('events signed at two nodes are in one chain behind one address, also after a kill', {
    timeout: 90_000,
  }, async () => {
    const cluster: LocalCluster = await start(at, 'whole');
    try {
      const [first, second, third] = cluster.nodes;
      if (first === undefined || second === undefined || third === undefined) throw new Error('three nodes');
      await using order = await newClientOrder(first);
      const uuid = order.masterId;
      const one = await order.at(first, 'rest').appendEvent({ uuid, eventType: 'PRODUCED', payload: { n: 1 } });
      const two = await order.at(second, 'grpc').appendEvent({ uuid, eventType: 'SHIPPED', payload: { n: 2 } });
      expect(two.seq).toBe(one.seq + 1);
      expect(await order.verified(third)).toEqual({ events: two.seq + 1, signatures: 3 });

      const seen = async () => (await fetch(`${first.internalBase}/cluster`)).json() as Promise<{ members: unknown[] }>;
      await expect.poll(async () => (await seen()).members, { timeout: 10_000 }).toHaveLength(3);
      const hooks = order.at(first, 'rest');
      const addresses = [cluster.base, `http://${cluster.grpcAddress}`, at.redis.url];
      const closed = [
        ...cluster.nodes.flatMap(({ at }) => [at.internalPort, at.port, at.grpcPort]),
        ...addresses.map((address) => Number(new URL(address).port)),
      ];
      for (const port of closed)
        await expect(hooks.createWebhook({ url: `http://127.0.0.1:${port}/` })).rejects.toThrow('not this service');

      await second.process.kill();
      for (let n = 3; n < 9; n += 1) {
        const transport = n % 2 === 0 ? 'rest' : 'grpc';
        await order.at(cluster, transport).appendEvent({ uuid, eventType: 'NOTED', payload: { n } });
      }
      expect(await order.verified(cluster)).toEqual({ events: two.seq + 7, signatures: 9 });
    } finally {
      await cluster[Symbol.asyncDispose]();
    }
    for (const { process, base } of cluster.nodes) {
      expect(isAlive(process.pid)).toBe(false);
      await expect(fetch(`${base}/health`)).rejects.toThrow();
    }
    await expect(fetch(`${cluster.base}/health`)).rejects.toThrow();
  });

  test('a node that cannot start stops the whole cluster, which reports the reason', async () => {
    const failing = start(at, 'wrong', { env: { LEASE_TTL_MS: 'soon' } });
    await expect(failing).rejects.toThrow(/^node-\d did not start: Set LEASE_TTL_MS to milliseconds/);
    for (const name of ['node-1', 'node-2', 'node-3'])
      expect(readFileSync(join(dir, 'wrong', `${name}.log`), 'utf8')).toContain('Set LEASE_TTL_MS');
  });

  test('a port in use is reported before anything is started', async () => {
    const { port } = await silentPort();
    await expect(start(at, 'taken', { port })).rejects.toThrow(
      `Set PORT and GRPC_PORT to free ports: something else listens on ${port}.`,
    );
    expect(readdirSync(dir)).not.toContain('taken');
  });
});
