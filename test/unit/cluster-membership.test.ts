import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { clusterMembership } from '../../cluster/membership.ts';
import { defaultPeerBounds } from '../../cluster/peers/peer-stream.ts';
import type { LeaseServer } from '../../cluster/placement/lease-server.ts';
import type { Announcement } from '../../cluster/placement/members.ts';
import { defaultTimings } from '../../cluster/placement/timings.ts';
import { MemoryBudget } from '../../src/runtime/memory-budget.ts';
import { settled } from '../support/clock.ts';
import { rig } from '../support/world.ts';

const idleLeases: LeaseServer = {
  acquire: async () => ({ held: true }),
  renew: async () => new Set(),
  release: async () => {},
  owner: async () => null,
  owners: async () => new Map(),
};

/** Node a, which has joined a cluster that shows these members. */
async function joined(board: { members: readonly Announcement[]; isAway?: boolean }) {
  const { clock, directory } = rig();
  const alarms: string[] = [];
  const membership = clusterMembership({
    self: { id: 'node-a', startedAt: 't2' },
    shardCount: 4,
    addressAt: (port) => `a:${port}`,
    server: idleLeases,
    board: {
      announce: async () => {},
      withdraw: async () => {},
      list: async () => {
        if (board.isAway) throw new Error('Redis does not answer');
        return board.members.map((member) => ({ ...member, order: null }));
      },
      order: async () => false,
    },
    news: { tell: () => {}, listen: () => {}, close: () => {} },
    unreadableMembers: { count: 0 },
    memory: new MemoryBudget(32 * 1024 * 1024),
    peerBounds: defaultPeerBounds,
    security: { tls: null, secret: 'a secret of all the nodes' },
    timings: defaultTimings,
    stopDelayMs: 0,
    clock,
    monotonicMs: () => clock.now(),
    random: (bytes) => new Uint8Array(bytes),
    clockCheck: { look: async () => {}, offMs: 0, silentMs: 0 },
    projectionLag: () => 0,
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
  return { membership, alarms, clock };
}

test('a node is not ready, and says what to do, while another run has its id', async () => {
  const own = { id: 'node-a', address: 'a:9100', startedAt: 't2', shardCount: 4, draining: false };
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

test('a node that started again after a crash, and cannot read the members since, is ready once its dead run counts no more', async () => {
  const dead = { id: 'node-a', address: 'a:9100', startedAt: 't1', shardCount: 4, draining: false };
  const board = { members: [dead], isAway: false };
  const { membership, alarms, clock } = await joined(board);
  board.isAway = true;
  await clock.advance(defaultTimings.memberTtlMs - 1);
  expect(await membership.readiness()).toMatchObject({ ready: false });
  await clock.advance(1);
  expect([await membership.readiness(), alarms]).toEqual([{ ready: true }, []]);
});
