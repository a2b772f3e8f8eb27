import type { Redis } from 'ioredis';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { startRedis } from '../../cluster/local/redis.ts';
import { connectRedis, createRedis } from '../../cluster/redis/client.ts';
import { redisLeases } from '../../cluster/redis/redis-leases.ts';
import { redisMembers } from '../../cluster/redis/redis-members.ts';
import { describeOnRedis } from '../support/backends/for-tests.ts';
import { testDir } from '../support/running-node.ts';

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
/** Of what expires while a test waits, and is looked at before: longer than a machine stands still. */
const shortMs = 600;
const untilOverMs = shortMs + 50;
let clusters = 0;

await describeOnRedis('leases and members in Redis', ({ url }) => {
  const redis: Redis = createRedis(url, () => {});
  afterAll(() => redis.disconnect());
  const connected = connectRedis(redis);
  const newCluster = async () => {
    await connected;
    const name = `test-${process.pid}-${++clusters}`;
    return { leases: redisLeases(redis, name), members: redisMembers(redis, name), name };
  };

  test('one of many concurrent acquisitions of a shard succeeds, and the others learn the owner', async () => {
    const { leases } = await newCluster();
    const tries = Array.from({ length: 20 }, (_, at) =>
      leases.acquire({ shard: 3, token: `t${at}` }, `node-${at}`, 5_000),
    );
    const results = await Promise.all(tries);
    const winner = results.findIndex(({ held }) => held);
    expect(results.filter(({ held }) => held)).toHaveLength(1);
    for (const [at, result] of results.entries())
      if (at !== winner) expect(result).toEqual({ held: false, owner: `node-${winner}` });
    expect(await leases.acquire({ shard: 3, token: `t${winner}` }, `node-${winner}`, 5_000)).toEqual({ held: true });
    expect(await leases.owners(8)).toEqual(new Map([[3, `node-${winner}`]]));
  });

  test('a renewal needs the token of the lease, and restores no expired lease', async () => {
    const { leases } = await newCluster();
    await leases.acquire({ shard: 1, token: 'a' }, 'node-a', 5_000);
    await leases.acquire({ shard: 2, token: 'b' }, 'node-b', 5_000);
    await leases.acquire({ shard: 3, token: 'c' }, 'node-a', 60);
    await wait(100);
    const held = ['a', 'a', 'c'].map((token, at) => ({ shard: at + 1, token }));
    expect(await leases.renew(held, 5_000)).toEqual(new Set([1]));
    expect(await leases.owner(2)).toBe('node-b');
    expect(await leases.owner(3)).toBeNull();
  });

  test('a lease is kept by renewals', async () => {
    const { leases } = await newCluster();
    await leases.acquire({ shard: 1, token: 'a' }, 'node-a', shortMs);
    for (let turn = 0; turn < 4; turn++) {
      await wait(shortMs / 3);
      expect(await leases.renew([{ shard: 1, token: 'a' }], shortMs)).toEqual(new Set([1]));
    }
    await wait(untilOverMs);
    expect(await leases.owner(1)).toBeNull();
  });

  const runOf = (id: string, over: Partial<{ address: string; startedAt: string; draining: boolean }> = {}) => {
    return { id, address: `${id}:1`, startedAt: 't', shardCount: 8, draining: false, ...over };
  };

  test('a released shard is reserved for its heir for a while', async () => {
    const { leases, members } = await newCluster();
    await members.announce(runOf('node-b'), 5_000);
    await leases.acquire({ shard: 1, token: 'a' }, 'node-a', 5_000);
    await leases.release({ shard: 1, token: 'not mine' }, 'node-x', 5_000);
    expect(await leases.owner(1)).toBe('node-a');
    await leases.release({ shard: 1, token: 'a' }, 'node-b', shortMs);
    expect(await leases.acquire({ shard: 1, token: 'c' }, 'node-c', 5_000)).toEqual({ held: false, owner: 'node-b' });
    expect(await leases.renew([{ shard: 1, token: 'a' }], 5_000)).toEqual(new Set());
    await wait(untilOverMs);
    expect(await leases.acquire({ shard: 1, token: 'c' }, 'node-c', 5_000)).toEqual({ held: true });
    await leases.release({ shard: 1, token: 'c' }, null, 150);
    expect(await leases.owner(1)).toBeNull();
  });

  test('an heir that is gone delays nobody', async () => {
    const { leases, members } = await newCluster();
    for (const [shard, ttlMs] of [shortMs, 5_000].entries()) {
      await members.announce(runOf('node-b'), ttlMs);
      await leases.acquire({ shard, token: 'a' }, 'node-a', 5_000);
      await leases.release({ shard, token: 'a' }, 'node-b', 5_000);
      expect([await leases.owner(shard), (await leases.owners(8)).get(shard)]).toEqual(['node-b', 'node-b']);
      if (shard === 0) await wait(untilOverMs);
      else await members.withdraw(runOf('node-b'));
      expect([await leases.owner(shard), (await leases.owners(8)).get(shard)]).toEqual([null, undefined]);
      expect(await leases.acquire({ shard, token: 'c' }, 'node-c', 5_000)).toEqual({ held: true });
    }
    // A shard that the heir has acquired is its own until its lease expires.
    await members.announce(runOf('node-b'), shortMs);
    expect(await leases.acquire({ shard: 3, token: 'b' }, 'node-b', 5_000)).toEqual({ held: true });
    await wait(untilOverMs);
    expect(await leases.acquire({ shard: 3, token: 'c' }, 'node-c', 5_000)).toEqual({ held: false, owner: 'node-b' });
  });

  test('clusters with different names are separate', async () => {
    const [one, two] = [await newCluster(), await newCluster()];
    await one.leases.acquire({ shard: 1, token: 'a' }, 'node-a', 5_000);
    expect(await two.leases.owner(1)).toBeNull();
  });

  test('members are listed while they announce themselves, sorted, with their orders', async () => {
    const { members } = await newCluster();
    await Promise.all([
      members.announce(runOf('node-b', { draining: true }), 5_000),
      members.announce(runOf('node-a'), 5_000),
      members.announce(runOf('node-c'), shortMs),
    ]);
    const orders = ['cordoned', 'draining', null, null, 'cordoned'] as const;
    const had: boolean[] = [];
    for (const order of orders) had.push(await members.order('node-a', order));
    expect(had).toEqual([false, true, true, false, false]);
    expect((await members.list()).map(({ id, draining, order }) => [id, draining, order])).toEqual([
      ['node-a', false, 'cordoned'],
      ['node-b', true, null],
      ['node-c', false, null],
    ]);
    await wait(untilOverMs);
    await members.order('node-a', null);
    await members.withdraw(runOf('node-b'));
    expect((await members.list()).map(({ id, order }) => [id, order])).toEqual([['node-a', null]]);
  });

  test('of two runs with one id the listed one stays until it is withdrawn or silent', async () => {
    const { members } = await newCluster();
    const [first, second, third] = [
      runOf('node-a', { address: 'a:1', startedAt: 't1' }),
      runOf('node-a', { address: 'a:1', startedAt: 't2' }),
      runOf('node-a', { address: 'b:1', startedAt: 't1' }),
    ];
    const seen = async () =>
      (await members.list()).map(({ address, startedAt, draining }) => [address, startedAt, draining]);
    for (const run of [first, second, third]) await members.announce(run, 5_000);
    await members.withdraw(second);
    expect(await seen()).toEqual([['a:1', 't1', false]]);
    await members.announce({ ...first, draining: true }, shortMs);
    expect(await seen()).toEqual([['a:1', 't1', true]]);
    await wait(untilOverMs);
    for (const run of [second, first]) await members.announce(run, 5_000);
    expect(await seen()).toEqual([['a:1', 't2', false]]);
    await members.withdraw(second);
    await members.announce(third, 5_000);
    expect(await seen()).toEqual([['b:1', 't1', false]]);
  });

  test('a run that was announced before the clock went back yields its id, unless it announces itself', async () => {
    const { members, name } = await newCluster();
    const [first, second] = [runOf('node-a', { startedAt: 't1' }), runOf('node-a', { startedAt: 't2' })];
    const [seconds] = await redis.time();
    const inAMinute = `${(Number(seconds) + 60) * 1_000}|${JSON.stringify(first)}`;
    const seen = async () => (await members.list()).map(({ startedAt }) => startedAt);
    await redis.hset(`members:{${name}}`, 'node-a', inAMinute);
    await members.announce(first, 5_000);
    await members.announce(second, 5_000);
    expect(await seen()).toEqual(['t1']);
    await redis.hset(`members:{${name}}`, 'node-a', inAMinute);
    await members.announce(second, 5_000);
    expect(await seen()).toEqual(['t2']);
  });

  test('an invalid announcement is no member', async () => {
    const { members, name } = await newCluster();
    const elsewhere = '9999999999999|{"id":"elsewhere","address":"unix:/tmp/x","startedAt":"t"}';
    await redis.hset(`members:{${name}}`, 'odd', '9999999999999|not json', 'half', '9999999999999|{"id":"half"}');
    await redis.hset(`members:{${name}}`, 'elsewhere', elsewhere);
    expect(await members.list()).toEqual([]);
    const met: string[] = [];
    await redisMembers(redis, name, (kind, key) => void met.push(`${kind} ${key.split(' ').at(-1)}`)).list();
    expect(met.toSorted()).toEqual(['member elsewhere', 'member half', 'member odd']);
    await redis.hdel(`members:{${name}}`, 'elsewhere');
    await members.announce(runOf('odd'), 5_000);
    expect((await members.list()).map(({ id }) => id)).toEqual(['odd']);
  });

  test('scripts that Redis forgot are loaded again', async () => {
    const { leases } = await newCluster();
    await redis.script('FLUSH');
    expect(await leases.acquire({ shard: 1, token: 'a' }, 'node-a', 5_000)).toEqual({ held: true });
  });
});

await describeOnRedis('a Redis that goes away', () => {
  test('fails calls at once, repeats none later, and is used again when it is back', async () => {
    const dir = testDir();
    const own = await startRedis({ dir });
    const port = Number(new URL(own.url).port);
    const redis = createRedis(own.url, () => {});
    onTestFinished(async () => {
      redis.disconnect();
      await own[Symbol.asyncDispose]();
    });
    expect(await connectRedis(redis)).toBe(true);
    const leases = redisLeases(redis, 'outage');
    await leases.acquire({ shard: 1, token: 'a' }, 'node-a', 60_000);
    own.process.pause();
    const began = performance.now();
    await expect(leases.renew([{ shard: 1, token: 'a' }], 60_000)).rejects.toThrow();
    expect(performance.now() - began).toBeLessThan(2_000);
    own.process.resume();
    await own.process.kill();
    await wait(100);
    const refused = performance.now();
    await expect(leases.acquire({ shard: 2, token: 'late' }, 'node-a', 60_000)).rejects.toThrow();
    expect(performance.now() - refused).toBeLessThan(1_000);
    await using back = await startRedis({ dir, port });
    let owner: string | null | undefined;
    for (let tries = 0; tries < 60 && owner === undefined; tries++) {
      await wait(100);
      owner = await leases.owner(2).catch(() => undefined);
    }
    expect(owner).toBeNull();
    expect(await redis.dbsize()).toBe(0);
    expect(await leases.renew([{ shard: 1, token: 'a' }], 60_000)).toEqual(new Set());
    expect(back.url).toBe(own.url);
  });
});

test('a missing Redis does not stop a start', async () => {
  const redis = createRedis('redis://127.0.0.1:1', () => {});
  expect(await connectRedis(redis)).toBe(false);
  await expect(redisLeases(redis, 'none').owner(1)).rejects.toThrow();
  redis.disconnect();
});
