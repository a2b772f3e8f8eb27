import { describe, expect, test } from 'vitest';
import { type Member, othersServe } from '../../../cluster/placement/members.ts';
import { Assignment, desiredOwner } from '../../../cluster/placement/rendezvous.ts';
import { defaultTimings } from '../../../cluster/placement/timings.ts';
import { cluster, ids, located, settledCluster } from '../../support/placement-rig.ts';

const member = (id: string, from: Partial<Member> = {}): Member => {
  return { id, address: id, startedAt: 't', shardCount: 256, draining: false, order: null, ...from };
};

test('others serve if another node is not leaving, by itself or by order', () => {
  const serve = (...members: readonly Member[]) => othersServe(members, 'a');
  const drained = [member('b', { draining: true }), member('c', { order: 'draining' })];
  expect([serve(), serve(member('a')), serve(member('a'), ...drained)]).toEqual([false, false, false]);
  const leaving = member('a', { draining: true });
  const cordoned = member('b', { order: 'cordoned' });
  expect([serve(member('a'), member('b')), serve(leaving, cordoned)]).toEqual([true, true]);
});

describe('rendezvous hashing', () => {
  const owners = (nodes: readonly string[]) => Array.from({ length: 256 }, (_, shard) => desiredOwner(shard, nodes));

  test('spreads shards evenly, in any order of the nodes', () => {
    const three = owners(ids(3));
    for (const id of ids(3)) expect(three.filter((owner) => owner === id).length).toBeGreaterThan(60);
    expect(owners(ids(3).reverse())).toEqual(three);
    expect(desiredOwner(1, [])).toBeNull();
  });

  test('moves about half of the shards from three nodes to six, all of them to new nodes', () => {
    const [three, six] = [owners(ids(3)), owners(ids(6))];
    const moved = six.filter((owner, shard) => owner !== three[shard]);
    expect(moved.length).toBeGreaterThan(100);
    expect(moved.length).toBeLessThan(156);
    expect(moved.every((owner) => !ids(3).includes(owner ?? ''))).toBe(true);
  });

  test('moves only the shards of a node that leaves', () => {
    const [three, two] = [owners(ids(3)), owners(ids(3).filter((id) => id !== 'node-1'))];
    for (const [shard, owner] of three.entries()) if (owner !== 'node-1') expect(two[shard]).toBe(owner);
  });

  test('lets a cordoned node keep its shards, and a draining node neither keep nor get any', () => {
    const cordoned = new Assignment([member('a'), member('b', { order: 'cordoned' })], 256);
    const draining = new Assignment(
      [member('a'), member('b', { order: 'draining' }), member('c', { draining: true })],
      256,
    );
    for (let shard = 0; shard < 256; shard++) {
      expect([cordoned.of(shard, 'b'), cordoned.of(shard, null), cordoned.of(shard, 'a')]).toEqual(['b', 'a', 'a']);
      expect(['a', 'b', 'c', null].map((owner) => draining.of(shard, owner))).toEqual(['a', 'a', 'a', 'a']);
    }
  });
});

describe('rebalancing', () => {
  test('gives all shards to one node at once, and a second node its share after the quiet time', async () => {
    const { start, pass, leaving } = cluster();
    const a = start('node-0');
    await pass(2_500);
    expect(a.leases.held).toHaveLength(32);
    const b = start('node-1');
    await pass(defaultTimings.quietMs - 500);
    expect(b.leases.held).toHaveLength(0);
    leaving.lastMs = 200;
    await pass(4_000);
    const wanted = Array.from({ length: 32 }, (_, shard) => shard).filter(
      (shard) => desiredOwner(shard, ids(2)) === 'node-1',
    );
    expect(b.leases.held.toSorted((x, y) => x - y)).toEqual(wanted);
    expect(a.leases.held).toHaveLength(32 - wanted.length);
    expect(leaving.most).toBeLessThanOrEqual(defaultTimings.handOversMax);
    expect(leaving.most).toBeGreaterThan(1);
  });

  test('moves nothing for members that come and go within the quiet time', async () => {
    const { start, pass } = cluster();
    const a = start('node-0');
    await pass(2_500);
    const b = start('node-1');
    await pass(500);
    b.life.end();
    await pass(20_000);
    expect(a.moves.filter((reason) => reason === 'handed_over')).toEqual([]);
    expect(a.leases.held).toHaveLength(32);
  });

  test('gives the shards of a killed node away within the lease time and two seconds', async () => {
    const { pass, nodes } = await settledCluster(3);
    nodes[0]?.life.end();
    await pass(defaultTimings.leaseTtlMs + 2_000);
    const held = nodes.slice(1).flatMap(({ leases }) => leases.held);
    expect(held.toSorted((x, y) => x - y)).toEqual(Array.from({ length: 32 }, (_, shard) => shard));
  });

  test('moves nothing while Redis is down, and owners keep their shards', async () => {
    const { pass, redis, nodes, held } = await settledCluster(3);
    const before = nodes.map(({ leases }) => leases.held);
    redis.isDown = true;
    await pass(60_000);
    expect(nodes.map(({ leases }) => leases.held)).toEqual(before);
    for (const { leases, id } of nodes)
      for (const shard of leases.held) expect(await located(leases, shard, pass)).toBe(id);
    redis.isDown = false;
    await pass(30_000);
    expect(held()).toHaveLength(32);
  });

  test('reports each renewal with its duration, and whether Redis answered', async () => {
    const { start, pass, redis } = cluster();
    const { renewals } = start('node-0');
    await pass(3 * defaultTimings.renewEveryMs);
    expect(renewals.length).toBeGreaterThan(1);
    expect(renewals.every(({ isAnswered }) => isAnswered)).toBe(true);
    redis.isDown = true;
    renewals.length = 0;
    await pass(3 * defaultTimings.renewEveryMs);
    expect(renewals.length).toBeGreaterThan(1);
    expect(renewals.every(({ isAnswered, seconds }) => !isAnswered && seconds > 0)).toBe(true);
  });

  test('acquires shards again after Redis lost all keys, and drops their ledgers from memory', async () => {
    const { pass, redis, nodes, held } = await settledCluster(3);
    for (const node of nodes) node.dropped.length = 0;
    redis.wipe();
    await pass(20_000);
    expect(held()).toHaveLength(32);
    expect(nodes.flatMap(({ dropped }) => dropped).length).toBeGreaterThan(0);
    expect(new Set(nodes.flatMap(({ lost }) => lost))).toEqual(new Set(['missing']));
  });

  test('takes the leases of a paused node away, which does not rely on them when it wakes', async () => {
    const { pass, nodes, first } = await settledCluster(2);
    const [shard = 0] = first.leases.held;
    first.life.pause();
    await pass(30_000);
    expect(nodes[1]?.leases.held).toHaveLength(32);
    first.life.resume();
    expect(await located(first.leases, shard, pass)).toBe('node-1');
    await pass(defaultTimings.renewEveryMs + 1_000);
    expect(first.dropped).toContain(shard);
    expect(new Set(first.lost)).toEqual(new Set(['ran_out']));
  });

  test('gives all shards of a draining node away at once, and gives it none back', async () => {
    const { pass, first, held } = await settledCluster(3);
    let drained = false;
    void first.rebalancing.drain().then(() => {
      drained = true;
    });
    await pass(1_000);
    expect([drained, first.leases.held]).toEqual([true, []]);
    await pass(10_000);
    expect(first.leases.held).toEqual([]);
    expect(held()).toHaveLength(32);
  });

  test('passes on shards that other nodes hand to a leaving node', async () => {
    const { start, pass, leaving } = cluster();
    const first = start('node-0');
    await pass(2_500);
    const second = start('node-1');
    leaving.lastMs = 300;
    for (let waited = 0; leaving.now === 0 && waited < 10_000; waited += 50) await pass(50);
    expect(leaving.now).toBeGreaterThan(0);
    const left = second.rebalancing.drain();
    await pass(3_000);
    await left;
    const stopped = second.rebalancing.stop();
    await pass(1_000);
    await stopped;
    const reading = first.owners();
    await pass(100);
    expect([...(await reading).values()].filter((owner) => owner === 'node-1')).toEqual([]);
    expect(second.leases.held).toEqual([]);
  });

  test('releases the shards of the last node when it drains', async () => {
    const { start, pass, redis } = cluster();
    const node = start('node-0');
    await pass(3_000);
    void node.rebalancing.drain();
    await pass(2_000);
    expect(node.leases.held).toEqual([]);
    const next = start('node-1');
    await pass(2_000);
    expect(next.leases.held).toHaveLength(32);
    expect(redis.isDown).toBe(false);
  });

  test('moves the shards of the only node without the store to the others, and back', async () => {
    const { pass, first, held } = await settledCluster(3);
    const before = first.leases.held.toSorted();
    first.store.answers = false;
    await pass(defaultTimings.quietMs + 3_000);
    expect(first.leases.held).toEqual([]);
    expect(held()).toHaveLength(32);
    first.store.answers = true;
    await pass(defaultTimings.quietMs + 3_000);
    expect(first.leases.held.toSorted()).toEqual(before);
  });

  test('moves nothing when all nodes lose the store, nor when it is back', async () => {
    const { pass, nodes } = await settledCluster(3);
    const before = nodes.map(({ leases, moves }) => [leases.held, [...moves]]);
    for (const { store } of nodes) store.answers = false;
    await pass(30_000);
    for (const { store } of nodes) store.answers = true;
    await pass(30_000);
    expect(nodes.map(({ leases, moves }) => [leases.held, moves])).toEqual(before);
  });

  test('moves the shards of a node whose clock is off at once, and back when it is right', async () => {
    const { pass, first, held } = await settledCluster(3);
    const before = first.leases.held.toSorted();
    expect(before.length).toBeGreaterThan(1);
    first.nodeClock.isRight = false;
    await pass(2_500);
    expect(first.leases.held).toEqual([]);
    await pass(defaultTimings.quietMs);
    expect(held()).toHaveLength(32);
    expect(first.leases.held).toEqual([]);
    first.nodeClock.isRight = true;
    await pass(defaultTimings.quietMs + 3_000);
    expect(first.leases.held.toSorted()).toEqual(before);
  });

  test('releases the shards of a single node whose clock is off, for the next node', async () => {
    const { start, pass } = cluster();
    const node = start('node-0');
    await pass(3_000);
    node.nodeClock.isRight = false;
    await pass(2_500);
    expect(node.leases.held).toEqual([]);
    const next = start('node-1');
    await pass(2_500);
    expect(next.leases.held).toHaveLength(32);
  });

  test('drains a node by an operator’s order, and undoes it', async () => {
    const { pass, redis, nodes } = await settledCluster(2);
    redis.order('node-0', 'draining');
    await pass(10_000);
    expect(nodes[0]?.leases.held).toEqual([]);
    redis.order('node-0', null);
    await pass(10_000);
    expect(nodes[0]?.leases.held.length).toBeGreaterThan(5);
  });
});
