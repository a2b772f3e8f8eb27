import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { clusterMembership } from '../../../cluster/membership.ts';
import { defaultPeerBounds } from '../../../cluster/peers/peer-stream.ts';
import type { LeaseServer } from '../../../cluster/placement/lease-server.ts';
import type { Announcement } from '../../../cluster/placement/members.ts';
import { defaultTimings } from '../../../cluster/placement/timings.ts';
import { MemoryBudget } from '../../../src/runtime/limits/memory-budget.ts';
import { settled } from '../../support/clock.ts';
import { append } from '../../support/commands.ts';
import { ownerPort } from '../../support/peer-ports.ts';
import { rig } from '../../support/world.ts';

const idleLeases: LeaseServer = {
  acquire: async () => ({ held: true }),
  renew: async () => new Set(),
  release: async () => {},
  owner: async () => null,
  owners: async () => new Map(),
};

const clockAhead = (aheadMs: number | null) => ({ look: async () => {}, aheadMs, silentMs: 0 });

/** Node a, which has joined a cluster whose board lists these members. */
async function joined(
  board: { members: readonly Announcement[]; isAway?: boolean },
  clockCheck: { look(): Promise<void>; aheadMs: number | null; silentMs: number } = clockAhead(0),
) {
  const { clock, directory } = rig();
  const announced: Announcement[] = [];
  const alarms: string[] = [];
  const membership = clusterMembership({
    self: { id: 'node-a', startedAt: 't2' },
    shardCount: 4,
    addressAt: (port) => `a:${port}`,
    server: idleLeases,
    board: {
      announce: async (announcement) => {
        announced.push(announcement);
        return null;
      },
      withdraw: async () => {},
      list: async () => {
        if (board.isAway) throw new Error('Redis does not answer');
        return board.members.map((member) => ({ ...member, order: null }));
      },
      order: async () => false,
    },
    news: { tell: () => {}, listen: () => {}, close: () => {} },
    memory: new MemoryBudget(32 * 1024 * 1024),
    peerBounds: defaultPeerBounds,
    security: { tls: null, secret: 'a secret of all the nodes' },
    timings: defaultTimings,
    stopDelayMs: 0,
    clock,
    now: () => clock.now(),
    monotonicMs: () => clock.now(),
    random: (bytes) => new Uint8Array(bytes),
    clockCheck,
    projectionLag: () => 0,
    badRedisValues: { member: 0, order: 0, lease: 0, news: 0 },
    failed: () => {},
    alarmed: (sentence) => void alarms.push(sentence),
  });
  onTestFinished(() => membership.close());
  const webhooks = {
    takeOver: async () => {},
    giveUp: () => {},
    catchUp: async () => {},
    heard: () => {},
    lookForDue: () => {},
  };
  membership.join(directory(), webhooks, new Registry(), { http: 1, grpc: 2, internal: 9_100 }, async () => {});
  await settled();
  return { membership, alarms, clock, clockCheck, announced };
}

const own = { id: 'node-a', address: 'a:9100', startedAt: 't2', shardCount: 4, draining: false, clockAheadMs: 0 };

test('a node is not ready, and says what to do, while another run has its id', async () => {
  const board = { members: [{ ...own, startedAt: 't1' }] };
  const { membership, alarms, clock } = await joined(board);
  const refused = { ready: false, reason: expect.stringContaining('give every node a NODE_ID of its own') };
  expect([await membership.readiness(), alarms]).toEqual([refused, []]);
  for (let second = 0; second < 4; second++) await clock.advance(1_000);
  expect([await membership.readiness(), alarms.length]).toEqual([refused, 1]);
  board.members = [own];
  await clock.advance(1_000);
  expect(await membership.readiness()).toEqual({ ready: true });
});

test('a node that restarts after a crash, and then cannot read the members, is ready once its dead run has run out', async () => {
  const board = { members: [{ ...own, startedAt: 't1' }], isAway: false };
  const { membership, alarms, clock } = await joined(board);
  board.isAway = true;
  await clock.advance(defaultTimings.memberTtlMs - 1);
  expect(await membership.readiness()).toMatchObject({ ready: false });
  await clock.advance(1);
  expect([await membership.readiness(), alarms]).toEqual([{ ready: true }, []]);
});

test('a store counts as lost 10 s after its last answer, until it answers again', async () => {
  const clockCheck = { ...clockAhead(0), silentMs: 9_999 };
  const { membership } = await joined({ members: [] }, clockCheck);
  expect(membership.hasStore()).toBe(true);
  clockCheck.silentMs = 10_000;
  expect(membership.hasStore()).toBe(false);
  clockCheck.silentMs = 0;
  expect(membership.hasStore()).toBe(true);
});

test('a node whose clock is off raises one alarm, is not ready and gives its shards away until the clock is right', async () => {
  const board = { members: [own, { ...own, id: 'node-b', address: 'b:9100' }] };
  const { membership, alarms, clock, clockCheck, announced } = await joined(board);
  await clock.advance(4_000);
  expect([await membership.readiness(), membership.isClockRight(), alarms]).toEqual([{ ready: true }, true, []]);
  clockCheck.aheadMs = -90_000;
  expect(membership.isClockRight()).toBe(false);
  for (let second = 0; second < 5; second++) await clock.advance(1_000);
  expect(await membership.readiness()).toEqual({
    ready: false,
    reason: 'the clock is 90000 ms off the clock of the store',
  });
  expect(announced.at(-1)).toMatchObject({ draining: true, clockAheadMs: -90_000 });
  expect(alarms).toEqual([expect.stringContaining('until time synchronisation is mended')]);
  clockCheck.aheadMs = 20;
  await clock.advance(2_000);
  expect([await membership.readiness(), membership.isClockRight()]).toEqual([{ ready: true }, true]);
  expect(announced.at(-1)).toMatchObject({ draining: false, clockAheadMs: 20 });
  expect(alarms).toHaveLength(1);
});

test('a node whose clock is behind forwards commands with deadlines in the time of the store', async () => {
  const { port, carried } = await ownerPort({ self: 'node-b' });
  const { membership, clock } = await joined(
    { members: [own, { ...own, id: 'node-b', address: `127.0.0.1:${port}` }] },
    clockAhead(-4_000),
  );
  await membership.peers.ask('node-b', append({ deadline: clock.now() + 2_000 }));
  expect(carried).toMatchObject([{ deadline: clock.now() + 6_000 }]);
});

test('nodes that are all off the store by the same time continue, and raise an alarm about the clock of the store', async () => {
  const members = [
    { ...own, clockAheadMs: 90_000 },
    { ...own, id: 'node-b', address: 'b:9100', clockAheadMs: 90_200 },
  ];
  const { membership, alarms, clock, announced } = await joined({ members }, clockAhead(90_000));
  await clock.advance(4_000);
  expect([await membership.readiness(), membership.isClockRight()]).toEqual([{ ready: true }, true]);
  expect(announced.at(-1)).toMatchObject({ draining: false });
  expect(alarms.at(-1)).toContain('mend the time synchronisation of Cassandra');
});

test('a look at the clock that is under way when the node closes is the last one', async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const clockCheck = { ...clockAhead(0), look: () => answered };
  const { membership, clock } = await joined({ members: [own] }, clockCheck);
  await membership.close();
  const { timers } = clock;
  answer();
  await settled();
  expect(clock.timers).toBe(timers);
});
