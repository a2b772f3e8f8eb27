import { describe, expect, test } from 'vitest';
import { DuplicateNodeCheck } from '../../../cluster/placement/duplicate-node-check.ts';
import { desiredOwner } from '../../../cluster/placement/rendezvous.ts';
import { defaultTimings } from '../../../cluster/placement/timings.ts';
import { cluster, ids } from '../../support/placement-rig.ts';

const { memberTtlMs, quietMs, leaseTtlMs } = defaultTimings;
const all = Array.from({ length: 32 }, (_, shard) => shard);
const sorted = (shards: readonly number[]) => shards.toSorted((one, other) => one - other);
const sharesOf = (id: string, among: readonly string[]) => all.filter((shard) => desiredOwner(shard, among) === id);

describe('a second node under an id that is in use', () => {
  test('takes no shards, and raises an alarm once the other node is known to live', async () => {
    const { start, startAt, pass } = cluster();
    const first = start('node-0');
    await pass(2_500);
    const second = startAt('node-0', 'elsewhere');
    await pass(memberTtlMs - 500);
    expect([second.rebalancing.view.duplicate?.address, second.alarms]).toEqual(['node-0', []]);
    await pass(60_000);
    expect(second.alarms).toEqual([
      'NODE_ID node-0 is in use at node-0 by a process started 0: give every node a NODE_ID of its own; after a crash it is free within seconds',
    ]);
    expect([first.alarms, first.rebalancing.view.duplicate]).toEqual([[], null]);
    expect([sorted(first.leases.held), second.leases.held]).toEqual([all, []]);
  });

  test('is found by a look, however long the reading took', () => {
    const run = (address: string) => ({
      id: 'node-0',
      address,
      startedAt: 't',
      shardCount: 1,
      draining: false,
      order: null,
    });
    const watch = new DuplicateNodeCheck(
      run('here'),
      memberTtlMs,
      () => memberTtlMs,
      () => {},
    );
    expect([watch.look([run('elsewhere')], 0)?.address, watch.found]).toEqual(['elsewhere', null]);
    expect([watch.look([run('elsewhere')], 1)?.address, watch.found?.address]).toEqual(['elsewhere', 'elsewhere']);
  });

  test('does not keep other nodes from their share, nor operators from draining the id', async () => {
    // So that the looks find the announcements of the two runs in turn.
    const { start, startAt, pass, redis } = cluster(32, { ...defaultTimings, lookEveryMs: 700 });
    const first = start('node-0');
    await pass(500);
    startAt('node-0', 'elsewhere');
    await pass(2_500);
    const other = start('node-1');
    await pass(quietMs + 3_000);
    expect(sorted(other.leases.held)).toEqual(sharesOf('node-1', ids(2)));
    expect(sorted(first.leases.held)).toEqual(sharesOf('node-0', ids(2)));
    redis.order('node-0', 'draining');
    await pass(quietMs + 3_000);
    expect([first.leases.held, sorted(other.leases.held)]).toEqual([[], all]);
  });

  test('leaves the first one announced when it stops, and serves when the first one stops', async () => {
    const { start, startAt, pass } = cluster();
    const first = start('node-0');
    await pass(100);
    const [second, third] = ['second', 'third'].map((address) => startAt('node-0', address));
    if (second === undefined || third === undefined) throw new Error('no nodes');
    await pass(10_000);
    await Promise.all([second.rebalancing.drain(), second.rebalancing.stop(), pass(1_500)]);
    second.life.end();
    expect(third.rebalancing.view.duplicate?.address).toBe('node-0');
    expect(sorted(first.leases.held)).toEqual(all);
    await Promise.all([first.rebalancing.drain(), first.rebalancing.stop(), pass(1_500)]);
    first.life.end();
    await pass(3_000);
    expect([third.rebalancing.view.duplicate, sorted(third.leases.held)]).toEqual([null, all]);
  });

  test('gets the id if the first one was silent for the time of a member, which gives its shards up when it wakes', async () => {
    const { start, startAt, pass } = cluster();
    const first = start('node-0');
    await pass(2_500);
    first.life.pause();
    const second = startAt('node-0', 'elsewhere');
    await pass(memberTtlMs + 2_000);
    expect(second.rebalancing.view.duplicate).toBeNull();
    first.life.resume();
    await pass(3_000);
    expect([first.leases.held, sorted(second.leases.held)]).toEqual([[], all]);
    await pass(memberTtlMs);
    expect([first.alarms.length, second.alarms.length]).toEqual([1, 0]);
  });
});

describe('a node that restarts with its id', () => {
  test('after a crash serves after the time of a member, without an alarm, and gets its shards after their leases', async () => {
    const { start, pass } = cluster();
    const before = start('node-0');
    await pass(20_400);
    before.life.end();
    const again = start('node-0');
    await pass(500);
    expect(again.rebalancing.view.duplicate?.startedAt).toBe('0');
    await pass(memberTtlMs + 1_500);
    expect(again.rebalancing.view.duplicate).toBeNull();
    await pass(leaseTtlMs);
    expect([sorted(again.leases.held), again.alarms]).toEqual([all, []]);
  });

  test('after a crash ignores its dead run after the time of a member, even without Redis', async () => {
    const { start, pass, redis } = cluster();
    const before = start('node-0');
    await pass(20_400);
    before.life.end();
    const again = start('node-0');
    await pass(500);
    redis.isDown = true;
    await pass(memberTtlMs - 1_000);
    expect(again.rebalancing.view.duplicate?.startedAt).toBe('0');
    await pass(1_000);
    expect(again.rebalancing.view.duplicate).toBeNull();
    await pass(30_000);
    redis.isDown = false;
    await pass(2_500);
    expect([again.rebalancing.view.duplicate, sorted(again.leases.held), again.alarms]).toEqual([null, all, []]);
  });

  test('after an orderly stop serves at once', async () => {
    const { start, pass } = cluster();
    const before = start('node-0');
    await pass(20_400);
    await Promise.all([before.rebalancing.drain(), before.rebalancing.stop(), pass(1_500)]);
    before.life.end();
    const again = start('node-0');
    await pass(1_500);
    expect([again.rebalancing.view.duplicate, sorted(again.leases.held)]).toEqual([null, all]);
  });
});

describe('a run that no node has announced', () => {
  test('takes the id of no node that announces itself, however often it is written', async () => {
    const { start, pass, redis } = cluster();
    const nodes = ids(3).map(start);
    await pass(20_000);
    const held = () => nodes.map(({ leases }) => sorted(leases.held));
    const before = held();
    for (let times = 0; times < 60; times++) {
      redis.forgeRuns(memberTtlMs);
      await pass(370);
      expect(nodes.map(({ rebalancing }) => rebalancing.view.duplicate)).toEqual([null, null, null]);
    }
    expect([held(), nodes.flatMap(({ alarms }) => alarms)]).toEqual([before, []]);
  });

  test('takes it from a node that could not announce itself for the time of a member', async () => {
    const { start, pass, redis } = cluster();
    const node = start('node-0');
    await pass(20_000);
    redis.isDown = true;
    await pass(memberTtlMs);
    redis.isDown = false;
    redis.forgeRuns(memberTtlMs);
    await pass(1_500);
    expect(node.rebalancing.view.duplicate?.startedAt).toBe('forged');
    await pass(memberTtlMs + 1_000);
    expect(node.rebalancing.view.duplicate).toBeNull();
  });
});

/** A check whose run announces itself, at times by the clock of the list and its own. */
function heldRun() {
  const clock = { list: 10_000_000, own: 0 };
  const self = { id: 'node-0', address: 'here', startedAt: 't' };
  const check = new DuplicateNodeCheck(
    self,
    memberTtlMs,
    () => clock.own,
    () => {},
  );
  const pass = (ms: number) => {
    clock.list += ms;
    clock.own += ms;
  };
  const announce = () => check.announced(clock.list + memberTtlMs, clock.own);
  /** Announces itself every second, until it holds its id. */
  const hold = () => {
    for (let seconds = 0; seconds * 1_000 <= memberTtlMs; seconds++) {
      announce();
      pass(1_000);
    }
    announce();
  };
  const forged = { ...self, startedAt: 'forged', shardCount: 1, draining: false, order: null };
  return { clock, check, pass, announce, hold, look: () => check.look([forged], clock.own) };
}

describe('a run holds its id', () => {
  test('once its announcements reach over twice the time of a member', () => {
    const { check, clock, announce, hold } = heldRun();
    announce();
    expect(check.heldUntil).toBe(0);
    hold();
    expect(check.heldUntil).toBe(clock.list + memberTtlMs);
  });

  test.each([1, 2_000, 3_600_000])(
    'again within the time of a member after the clock of the list has gone back by %d ms',
    (backMs) => {
      const { check, clock, announce, hold, pass } = heldRun();
      hold();
      clock.list -= backMs;
      announce();
      pass(1_000);
      announce();
      hold();
      expect(check.heldUntil).toBe(clock.list + memberTtlMs);
    },
  );

  test('no more once its announcement has run out before the next one, or another run is announced', () => {
    const { check, announce, hold, pass } = heldRun();
    hold();
    pass(memberTtlMs);
    announce();
    expect(check.heldUntil).toBe(0);
    hold();
    check.announced(null, 0);
    expect(check.heldUntil).toBe(0);
  });

  test('no longer than its announcement is valid by its own clock', () => {
    const { check, hold, pass, look } = heldRun();
    hold();
    expect(look()).toBeNull();
    pass(memberTtlMs - 1);
    expect(look()).toBeNull();
    pass(1);
    expect([look()?.startedAt, check.heldUntil]).toEqual(['forged', expect.any(Number)]);
  });
});

test('of two nodes with one id the first keeps it when Redis forgets both', async () => {
  const { start, startAt, pass, redis } = cluster();
  const first = start('node-0');
  await pass(20_400);
  const second = startAt('node-0', 'elsewhere');
  await pass(10_000);
  for (let times = 0; times < 10; times++) {
    redis.wipe();
    await pass(memberTtlMs + 170);
    expect([first.rebalancing.view.duplicate, second.rebalancing.view.duplicate?.address]).toEqual([null, 'node-0']);
  }
});
