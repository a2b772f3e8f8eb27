import type { Socket } from 'node:net';
import type { Directory } from '../src/actors/routing/directory.ts';
import { NotOwner, type Peers } from '../src/actors/routing/peers.ts';
import type { Placement } from '../src/actors/routing/placement.ts';
import type { Command } from '../src/domain/ledger/command.ts';
import type { Membership } from '../src/node/membership.ts';
import { type Clock, repeat, sleep } from '../src/runtime/clock/clock.ts';
import type { MemoryBudget } from '../src/runtime/limits/memory-budget.ts';
import { type ClockCheck, ClockWarning, isClockRight } from './clock-check.ts';
import { createClusterMetrics } from './metrics.ts';
import { GrpcPeers } from './peers/grpc-peers.ts';
import { HeadSubscribers } from './peers/head-subscribers.ts';
import { peerServer } from './peers/peer-service.ts';
import type { PeerBounds } from './peers/peer-stream.ts';
import { NodeHeads } from './peers/remote-heads.ts';
import type { PeerSecurity } from './peers/security.ts';
import { idIsTaken } from './placement/duplicate-node-check.ts';
import type { LeaseServer } from './placement/lease-server.ts';
import { Leases } from './placement/leases.ts';
import { type MemberBoard, memberPorts, othersServe, type Run } from './placement/members.ts';
import { Rebalancing } from './placement/rebalancing.ts';
import type { PlacementTimings } from './placement/timings.ts';
import type { BadValues } from './redis/bad-values.ts';
import type { News } from './redis/redis-news.ts';
import { WebhookShards } from './webhook-shards.ts';

/** A limit, so that the ledgers of a lost node do not all load at once. */
const activationsPerSecond = 200;
/** How often this node compares its clock with the store's, and closes connections to nodes that are gone. */
const checkEveryMs = 2_000;
/** After this time without an answer the store counts as lost. Several checks have failed by then. */
const storeLostAfterMs = 10_000;
/** The most time that handing over all shards may take. The listeners close after it, within the 20 s of a stop. */
export const leaveMaxMs = 5_000;
/** After this time a node serves without knowing the members: the store decides who writes. */
const membersUnknownMaxMs = 3_000;

interface MembershipParts {
  readonly self: Pick<Run, 'id' | 'startedAt'>;
  readonly shardCount: number;
  /** Returns the host:port at which other nodes reach this node, given its internal port. */
  readonly addressAt: (internalPort: number) => string;
  readonly server: LeaseServer;
  readonly board: MemberBoard;
  readonly news: News;
  readonly security: PeerSecurity;
  readonly peerBounds: PeerBounds;
  readonly memory: MemoryBudget;
  readonly timings: PlacementTimings;
  /** A node that leaves keeps its listeners open for at least this time. */
  readonly stopDelayMs: number;
  readonly clock: Clock;
  /** The node's time, Unix ms. It differs from that of `clock` while the machine's time is implausible. */
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly random: (bytes: number) => Uint8Array;
  readonly clockCheck: Pick<ClockCheck, 'look' | 'aheadMs' | 'silentMs'>;
  /** The number of events of this node whose projections may not be written yet. */
  readonly projectionLag: () => number;
  readonly badRedisValues: BadValues['counts'];
  /** Logs a failure. The node continues. */
  readonly failed: (what: string, error: unknown) => void;
  /** Logs a sentence about a fault that an operator has to repair. */
  readonly alarmed: (sentence: string) => void;
}

interface ClusterMembership extends Membership {
  readonly placement: Placement;
  readonly peers: Peers;
  /** Whether the store has answered this node within 10 s. */
  hasStore(): boolean;
}

/** Builds a node's leases, rebalancing and connections to its peers. */
export function clusterMembership(parts: MembershipParts): ClusterMembership {
  const { self, shardCount, server, board, news, security, timings, clock, monotonicMs, random, clockCheck } = parts;
  const { failed, alarmed, memory } = parts;
  const leases = new Leases({ self: self.id, server, timings, monotonicMs, random });
  const webhookShards = new WebhookShards({ leases, shardCount, clock, failed });
  let directory: Directory | null = null;
  let checkSignature = async (_command: Command): Promise<void> => {
    throw new NotOwner(null);
  };
  let rebalancing: Rebalancing | null = null;
  let joinedAt = Number.POSITIVE_INFINITY;
  let cancelChecks = () => {};
  const members = () => rebalancing?.view.members ?? [];
  const shards = () => {
    const leaving = rebalancing?.view.movingAway.length ?? 0;
    const held = leases.held.length - leaving;
    return { held, leaving, elsewhere: shardCount - held - leaving };
  };
  const clockIsRight = () => isClockRight(clockCheck.aheadMs, members(), self.id);
  const storeAheadMs = () => (clockIsRight() ? 0 : Math.max(0, clock.now() - (clockCheck.aheadMs ?? 0) - parts.now()));
  const clockWarning = new ClockWarning(alarmed);
  const metrics = createClusterMetrics({
    shards,
    projectionLag: parts.projectionLag,
    badRedisValues: parts.badRedisValues,
    clock: () => ({ aheadMs: clockCheck.aheadMs, isRight: clockIsRight() }),
  });
  const hasStore = () => clockCheck.silentMs < storeLostAfterMs;
  const addressOf = (id: string) => members().find((member) => member.id === id)?.address ?? null;
  const ownBatches = () => directory?.batches ?? { confirmed: 0, running: 0 };
  const peers = new GrpcPeers({
    self: self.id,
    security,
    memory,
    bounds: parts.peerBounds,
    addressOf,
    monotonicMs,
    storeAheadMs,
    ownBatches,
    meter: metrics.peers,
    heard: (ledgerId, seq) => remoteHeads.heard(ledgerId, seq),
  });
  const subscribers = new HeadSubscribers();
  const remoteHeads = new NodeHeads({
    self: self.id,
    shardCount,
    placement: leases,
    subscribers,
    clock,
    headsFrom: (node) => peers.headsFrom(node),
  });
  const service = peerServer({
    self: self.id,
    security,
    memory,
    monotonicMs,
    now: () => clock.now(),
    subscribers,
    checkSignature: (command) => checkSignature(command),
    unreadable: (error) => {
      metrics.unreadableCommand();
      failed('reading a command of another node', error);
    },
    failed: (error) => failed('carrying out a command of another node', error),
    batchesConfirmed: () => ownBatches().confirmed,
    carryOut: async (command) => {
      try {
        if (directory === null) throw new NotOwner(null);
        return await directory.carryOut(command);
      } catch (error) {
        if (error instanceof NotOwner) metrics.notOwner();
        throw error;
      }
    },
  });

  const check = async () => {
    peers.forgetGone();
    await clockCheck.look();
    clockWarning.look(clockCheck.aheadMs, clockIsRight());
  };

  const clusterPage = async () => {
    const owners = await server.owners(shardCount).catch(() => null);
    const held = [...(owners?.values() ?? [])];
    return {
      node: self.id,
      members: members().map((member) => {
        return { ...member, shards: held.filter((owner) => owner === member.id).length };
      }),
      shards: shards(),
      /** false while Redis does not answer. Each node then continues with the shards that it has. */
      owners_known: owners !== null,
      owners: Object.fromEntries(owners ?? new Map()),
      moving: rebalancing?.view.movingAway ?? [],
      moves: metrics.moves,
      actors: directory?.load() ?? { ledgers: 0, waiting: 0 },
      clock_off_ms: clockCheck.aheadMs === null ? null : Math.abs(clockCheck.aheadMs),
    };
  };

  return {
    shardCount,
    activationsPerSecond,
    placement: leases,
    peers,
    hasStore,
    ownsShardOf: (id) => webhookShards.ownsShardOf(id),
    remoteHeads,
    tellOthers: (subscriptionId) => news.tell(subscriptionId),
    takeConnection: (socket: Socket, proved) => service.takeConnection(socket, proved),
    pages: new Map([['/cluster', clusterPage]]),
    isClockRight: clockIsRight,
    readiness: async () => {
      const { aheadMs } = clockCheck;
      if (aheadMs === null) return { ready: false, reason: 'the clock of the store is not known yet' };
      if (!clockIsRight())
        return { ready: false, reason: `the clock is ${Math.abs(aheadMs)} ms off the clock of the store` };
      if ((rebalancing?.view.lookedAt ?? null) === null && monotonicMs() - joinedAt < membersUnknownMaxMs)
        return { ready: false, reason: 'the members of the cluster are not known yet' };
      const duplicate = rebalancing?.view.duplicate ?? null;
      if (duplicate !== null) return { ready: false, reason: idIsTaken(duplicate) };
      // By then other nodes that lost the store too have announced it. If all have, they stay ready and answer 503.
      const hasLostStore = clockCheck.silentMs >= storeLostAfterMs + timings.memberTtlMs;
      if (hasLostStore && othersServe(members(), self.id))
        return { ready: false, reason: 'the store does not answer this node, and other nodes have it' };
      return { ready: directory !== null };
    },
    ports: () => memberPorts(members()),
    join(joined, webhooks, registry, { http, grpc, internal }, checkSignatureHere) {
      metrics.register(registry);
      checkSignature = checkSignatureHere;
      directory = joined;
      joinedAt = monotonicMs();
      rebalancing = new Rebalancing({
        self: { ...self, address: parts.addressAt(internal), ports: [http, grpc, internal] },
        board,
        server,
        leases,
        shardCount,
        timings,
        clock,
        monotonicMs,
        meter: metrics.placement,
        leave: (shard, release) => joined.leave(shard, release),
        hasStore,
        isClockRight: clockIsRight,
        clockAheadMs: () => clockCheck.aheadMs,
        failed,
        alarmed,
      });
      rebalancing.start();
      webhookShards.start(webhooks);
      news.listen((subscriptionId) => webhookShards.heard(subscriptionId));
      cancelChecks = repeat(clock, checkEveryMs, check);
    },
    async leave() {
      // Load balancers need this time to see that the node is not ready, so that no connection is refused.
      const noticed = sleep(clock, parts.stopDelayMs);
      await Promise.race([rebalancing?.drain(), sleep(clock, leaveMaxMs)]);
      await noticed;
    },
    async close() {
      cancelChecks();
      webhookShards.stop();
      news.close();
      remoteHeads[Symbol.dispose]();
      await rebalancing?.stop();
      await peers[Symbol.asyncDispose]();
      service.close();
    },
  };
}
