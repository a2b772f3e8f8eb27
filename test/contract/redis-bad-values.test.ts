import type { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { membersMax } from '../../cluster/placement/members.ts';
import { BadValues } from '../../cluster/redis/bad-values.ts';
import { connectRedis, createRedis } from '../../cluster/redis/client.ts';
import { listMembers } from '../../cluster/redis/lease-scripts.ts';
import { redisLeases } from '../../cluster/redis/redis-leases.ts';
import { redisMembers } from '../../cluster/redis/redis-members.ts';
import { redisNews } from '../../cluster/redis/redis-news.ts';
import { runScript } from '../../cluster/redis/script.ts';
import { describeOnRedis } from '../support/backends/for-tests.ts';

let clusters = 0;

await describeOnRedis('a bad value in Redis', ({ url }) => {
  const redis: Redis = createRedis(url, () => {});
  const listener = createRedis(url, () => {});
  afterAll(() => {
    redis.disconnect();
    listener.disconnect();
  });
  const connected = connectRedis(redis);
  const newCluster = async () => {
    await connected;
    const name = `bad-${process.pid}-${++clusters}`;
    const warnings: string[] = [];
    const bad = new BadValues((sentence) => void warnings.push(sentence));
    const leases = redisLeases(redis, name, bad.met);
    return { name, leases, members: redisMembers(redis, name, bad.met), bad, warnings };
  };
  const run = (id: string) => ({ id, address: `${id}:1`, startedAt: 't', shardCount: 8, draining: false });

  const key = (name: string) => `lease:{${name}}:1`;
  const lease = async (name: string, owner: string, token = 'x') => {
    await redis.hset(key(name), 'owner', owner, 'token', token);
    await redis.pexpire(key(name), 5_000);
  };
  const badLeases: readonly [string, (name: string) => Promise<unknown>][] = [
    ['a text', (name) => redis.set(key(name), 'mine')],
    ['a list', (name) => redis.rpush(key(name), 'mine')],
    ['a lease without an end', (name) => redis.hset(key(name), 'owner', 'ghost', 'token', 'x')],
    [
      'a lease of a year',
      async (name) => {
        await redis.hset(key(name), 'owner', 'ghost', 'token', 'x');
        await redis.pexpire(key(name), 365 * 86_400_000);
      },
    ],
    ['a lease without an owner', (name) => redis.hset(key(name), 'token', 'x')],
    ['an owner of a megabyte', (name) => lease(name, 'x'.repeat(1_000_000))],
    ['an owner without a name', (name) => lease(name, '')],
    ['an owner of two words', (name) => lease(name, 'two words')],
    ['an owner that ends in a zero byte', (name) => lease(name, 'ghost\0')],
    ['a token of a megabyte', (name) => lease(name, 'ghost', 'x'.repeat(1_000_000))],
  ];
  test.each(badLeases)(
    '%s in place of a lease is ignored, reported once, and replaced by the next lease',
    async (_, put) => {
      const { name, leases, bad, warnings } = await newCluster();
      await put(name);
      await leases.acquire({ shard: 2, token: 'b' }, 'node-b', 5_000);
      for (let look = 0; look < 3; look++) expect(await leases.owners(8)).toEqual(new Map([[2, 'node-b']]));
      expect(await leases.owner(1)).toBeNull();
      expect(bad.counts).toEqual({ member: 0, order: 0, lease: 4, news: 0 });
      expect(warnings).toEqual([expect.stringContaining(key(name))]);
      const both = [
        { shard: 1, token: 'a' },
        { shard: 2, token: 'b' },
      ];
      expect(await leases.renew(both, 5_000)).toEqual(new Set([2]));
      await leases.release({ shard: 1, token: 'a' }, 'node-b', 5_000);
      expect(await leases.acquire({ shard: 1, token: 'a' }, 'node-a', 5_000)).toEqual({ held: true });
      expect(await leases.renew(both, 5_000)).toEqual(new Set([1, 2]));
      expect(await leases.owner(1)).toBe('node-a');
    },
  );

  const far = '9999999999999';
  const soon = () => Date.now() + 5_000;
  test.each([
    ['without a time', () => JSON.stringify(run('odd'))],
    ['of another time', () => `soon|${JSON.stringify(run('odd'))}`],
    ['for ever', () => `${far}|${JSON.stringify(run('odd'))}`],
    ['that is no JSON', () => `${soon()}|no json`],
    ['that is a number', () => `${soon()}|7`],
    ['of another id', () => `${soon()}|${JSON.stringify(run('node-a'))}`],
    ['with a URL for its address', () => `${soon()}|${JSON.stringify({ ...run('odd'), address: 'http://odd:1' })}`],
    ['with an address of another kind', () => `${soon()}|${JSON.stringify({ ...run('odd'), address: 7 })}`],
    ['with ports that are none', () => `${soon()}|${JSON.stringify({ ...run('odd'), ports: [99_999] })}`],
    ['of a megabyte', () => `${soon()}|${JSON.stringify({ ...run('odd'), more: 'x'.repeat(1_000_000) })}`],
  ])('an announcement %s is ignored, affects nobody else, and leaves its id free', async (_, text) => {
    const { name, leases, members, bad, warnings } = await newCluster();
    await redis.hset(`members:{${name}}`, 'odd', text());
    await members.announce(run('node-a'), 5_000);
    for (let look = 0; look < 3; look++) expect((await members.list()).map(({ id }) => id)).toEqual(['node-a']);
    expect(bad.counts).toMatchObject({ member: 3, lease: 0 });
    expect(warnings).toEqual([expect.stringContaining(`members:{${name}} odd`)]);
    await leases.acquire({ shard: 1, token: 'a' }, 'node-a', 5_000);
    await leases.release({ shard: 1, token: 'a' }, 'odd', 5_000);
    await leases.owners(8);
    await redis.hset(`members:{${name}}`, 'odd', '1|gone');
    await members.announce(run('odd'), 5_000);
    expect((await members.list()).map(({ id }) => id)).toEqual(['node-a', 'odd']);
    await members.withdraw(run('odd'));
    expect((await members.list()).map(({ id }) => id)).toEqual(['node-a']);
  });

  test('members and orders of another type are ignored and reported until the next announcement', async () => {
    const { name, leases, members, bad, warnings } = await newCluster();
    await redis.set(`members:{${name}}`, 'x');
    await redis.set(`orders:{${name}}`, 'x');
    expect(await members.list()).toEqual([]);
    await members.withdraw(run('node-a'));
    await leases.acquire({ shard: 1, token: 'a' }, 'node-a', 5_000);
    await leases.release({ shard: 1, token: 'a' }, 'node-b', 5_000);
    expect(await leases.owners(8)).toEqual(new Map());
    await members.announce(run('node-a'), 5_000);
    expect((await members.list()).map(({ id, order }) => [id, order])).toEqual([['node-a', null]]);
    expect(bad.counts).toMatchObject({ member: 1, order: 2 });
    expect(warnings).toHaveLength(2);
  });

  test.each([
    ['of two words', 'two words'],
    ['with a line feed', 'node-a\n'],
    ['of a megabyte', 'x'.repeat(1_000_000)],
  ])('a member whose id is %s is reported once and removed', async (_, id) => {
    const { name, members, bad, warnings } = await newCluster();
    await members.announce(run('node-a'), 5_000);
    await redis.hset(`members:{${name}}`, id, `${soon()}|${JSON.stringify(run(id.slice(0, 100)))}`);
    for (let look = 0; look < 3; look++) expect((await members.list()).map((member) => member.id)).toEqual(['node-a']);
    expect([bad.counts.member, warnings.length]).toEqual([1, 1]);
    expect(await redis.hkeys(`members:{${name}}`)).toEqual(['node-a']);
  });

  test('a run that holds its id replaces and reports what stands there, and no other run does', async () => {
    const { name, members, bad, warnings } = await newCluster();
    const until = (await members.announce(run('node-a'), 60_000)) ?? 0;
    expect(until).toBeGreaterThan(0);
    const forged = `${until}|${JSON.stringify({ ...run('node-a'), startedAt: 'forged' })}`;
    await redis.hset(`members:{${name}}`, 'node-a', forged);
    // It has not held its id, it did so before, or the clock of Redis went back.
    for (const heldUntil of [0, until - 120_000, until + 120_000])
      expect(await members.announce(run('node-a'), 60_000, heldUntil)).toBeNull();
    expect([(await members.list()).map(({ startedAt }) => startedAt), warnings]).toEqual([['forged'], []]);
    expect(await members.announce(run('node-a'), 60_000, until)).toBeGreaterThanOrEqual(until);
    expect((await members.list()).map(({ startedAt }) => startedAt)).toEqual(['t']);
    expect([bad.counts.member, warnings]).toEqual([1, [expect.stringContaining(`members:{${name}} node-a`)]]);
  });

  test('more members than a cluster may have are refused, and replaced by the next announcements', async () => {
    const { name, members, bad } = await newCluster();
    const ids = Array.from({ length: membersMax }, (_, at) => `node-${at}`);
    await redis.hset(`members:{${name}}`, ...ids.flatMap((id) => [id, `${soon()}|${JSON.stringify(run(id))}`]));
    expect(await members.list()).toHaveLength(membersMax);
    await redis.hset(`members:{${name}}`, 'one-more', `${soon()}|${JSON.stringify(run('one-more'))}`);
    await expect(members.list()).rejects.toThrow('Redis has 257 members of the cluster: it may have 256');
    expect(bad.counts.member).toBe(1);
    await members.announce(run('node-1'), 5_000);
    await members.announce(run('node-2'), 5_000);
    expect((await members.list()).map(({ id }) => id)).toEqual(['node-1', 'node-2']);
  });

  const gone: readonly (readonly [string, (at: number) => readonly [string, string], number])[] = [
    ['that have run out', (at) => [`old-${at}`, `${Date.now() - 1_000}|${JSON.stringify(run(`old-${at}`))}`], 0],
    ['that are no announcements', (at) => [`odd-${at}`, 'x'], 1],
    ['that are valid for ever', (at) => [`odd-${at}`, `${far}|${JSON.stringify(run(`odd-${at}`))}`], 1],
    ['without the id of a node', (at) => [`two words ${at}`, `${soon()}|${JSON.stringify(run('two'))}`], 1],
  ];
  test.each(gone)('many entries %s take no place from the members', async (_, entry, isReported) => {
    const { name, members, bad } = await newCluster();
    const key = `members:{${name}}`;
    const alive = Array.from({ length: 200 }, (_, at) => `node-${at}`);
    const ids = () => members.list().then((listed) => new Set(listed.map(({ id }) => id)));
    await redis.hset(key, ...alive.flatMap((id) => [id, `${soon()}|${JSON.stringify(run(id))}`]));
    const fill = () => redis.hset(key, ...Array.from({ length: 800 }, (_, at) => entry(at)).flat());
    await fill();
    expect(await ids()).toEqual(new Set(alive));
    expect([bad.counts.member, await redis.hlen(key)]).toEqual([isReported, 200]);
    await fill();
    await members.announce(run('node-1'), 5_000);
    expect([await ids(), await redis.hlen(key)]).toEqual([new Set(alive), 200]);
  });

  test('more entries than a script goes over are removed at once', async () => {
    const { name, members } = await newCluster();
    const key = `members:{${name}}`;
    await members.announce(run('node-1'), 5_000);
    await redis.hset(key, ...Array.from({ length: 2_000 }, (_, at) => [`old-${at}`, '1|gone']).flat());
    await expect(members.list()).rejects.toThrow('Redis has 2001 members');
    await members.announce(run('node-2'), 5_000);
    expect(await redis.hkeys(key)).toEqual(['node-2']);
  });

  test('an order of a megabyte is ignored and reported, and is not read', async () => {
    const { name, members, warnings } = await newCluster();
    await redis.hset(`orders:{${name}}`, 'node-a', 'x'.repeat(1_000_000));
    await members.announce(run('node-a'), 5_000);
    expect((await members.list()).map(({ order }) => order)).toEqual([null]);
    const answer = await runScript(redis, listMembers, [`members:{${name}}`, `orders:{${name}}`], []);
    expect(JSON.stringify(answer).length).toBeLessThan(1_000);
    expect(warnings).toEqual([expect.stringContaining(`orders:{${name}} node-a`)]);
  });

  test('an unknown order is ignored and reported', async () => {
    const { name, members, warnings } = await newCluster();
    await redis.hset(`orders:{${name}}`, 'node-a', 'fly');
    await members.announce(run('node-a'), 5_000);
    expect((await members.list()).map(({ order }) => order)).toEqual([null]);
    expect(warnings).toEqual([expect.stringContaining(`orders:{${name}} node-a`)]);
  });

  test('news without a subscription are ignored and reported once', async () => {
    const { name, bad, warnings } = await newCluster();
    const heard: string[] = [];
    const news = redisNews(redis, listener, name, bad.met);
    news.listen((id) => void heard.push(id));
    const id = '01890a5d-ac96-774b-bcce-b302099a8057';
    await expect
      .poll(async () => Number((await redis.pubsub('NUMSUB', `news:{${name}}`))[1]), { timeout: 5_000 })
      .toBe(1);
    for (const text of ['', 'x'.repeat(100_000), '{"a":1}', id]) await redis.publish(`news:{${name}}`, text);
    await expect.poll(() => heard, { timeout: 5_000 }).toEqual([id]);
    expect([bad.counts.news, warnings.length]).toEqual([3, 1]);
  });
});
