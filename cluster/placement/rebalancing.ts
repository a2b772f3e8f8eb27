import type { NodeId } from '../../src/actors/routing/placement.ts';
import { type Clock, repeat } from '../../src/runtime/clock/clock.ts';
import { DuplicateNodeCheck } from './duplicate-node-check.ts';
import type { LeaseServer } from './lease-server.ts';
import type { Leases } from './leases.ts';
import type { Announcement, Member, MemberBoard, Run } from './members.ts';
import { Assignment, signatureOf } from './rendezvous.ts';
import type { PlacementTimings } from './timings.ts';

export interface PlacementMeter {
  moved(reason: 'acquired' | 'handed_over' | 'lost'): void;
  handedOver(seconds: number): void;
  /** A renewal of the leases has ended. `isAnswered`: whether the server answered. */
  renewed(seconds: number, isAnswered: boolean): void;
  lost(cause: LossCause): void;
}

/** `ran_out`: this node did not renew the lease in time. `missing`: the server lost it before its end. */
export type LossCause = 'ran_out' | 'missing';

interface RebalancingParts {
  readonly self: Run & Pick<Announcement, 'ports'>;
  readonly board: MemberBoard;
  readonly server: LeaseServer;
  readonly leases: Leases;
  readonly shardCount: number;
  readonly timings: PlacementTimings;
  readonly clock: Clock;
  readonly monotonicMs: () => number;
  readonly meter: PlacementMeter;
  /** Stops accepting commands for a shard, waits for the running ones, then calls `release` (Directory.leave). */
  readonly leave: (shard: number, release: () => Promise<void>) => Promise<void>;
  /** Whether the store answers this node. A node that lost the store hands its shards to nodes that have it. */
  readonly hasStore: () => boolean;
  /** Whether this node may decide. If not, it hands its shards over at once, and takes none. */
  readonly isClockRight: () => boolean;
  /** How far this node's clock is ahead of the store's, ms. null: not known yet. */
  readonly clockAheadMs: () => number | null;
  readonly failed: (what: string, error: unknown) => void;
  readonly alarmed: (sentence: string) => void;
}

/**
 * Acquires the shards that this node should run, and hands over the others. There is no coordinator: each node reads
 * the same members and owners, and computes the same assignment.
 *
 * Nothing moves while members or leases cannot be read, or while no node has the store. A node whose id another node
 * has, or whose clock is wrong, takes no shards and gives up its own.
 */
export class Rebalancing {
  readonly #parts: RebalancingParts;
  readonly #duplicates: DuplicateNodeCheck;
  readonly #cancels: (() => void)[] = [];
  #draining = false;
  #members: readonly Member[] = [];
  #assignment: Assignment | null = null;
  #changedAt = 0;
  readonly #movingAway = new Set<number>();
  /** The hand-overs that the last look began. */
  #handingOver: Promise<void> = Promise.resolve();
  #lookedAt: number | null = null;

  constructor(parts: RebalancingParts) {
    this.#parts = parts;
    const { self, timings, monotonicMs, alarmed } = parts;
    this.#duplicates = new DuplicateNodeCheck(self, timings.memberTtlMs, monotonicMs, alarmed);
  }

  /** The last reading of the members. `duplicate`: another run with this node's id. `lookedAt`: monotonic, ms. */
  get view(): {
    readonly members: readonly Member[];
    readonly duplicate: Run | null;
    readonly movingAway: readonly number[];
    readonly lookedAt: number | null;
  } {
    return {
      members: this.#members,
      duplicate: this.#duplicates.found,
      movingAway: [...this.#movingAway],
      lookedAt: this.#lookedAt,
    };
  }

  start(): void {
    const { timings } = this.#parts;
    this.#every(timings.heartbeatEveryMs, 'announcing this node', () => this.#announce());
    this.#every(timings.lookEveryMs, 'looking at members and shards', () => this.#look());
    this.#every(timings.renewEveryMs, 'renewing leases', () => this.#renew());
  }

  /** Hands all shards over, as far as possible, and takes no more. */
  async drain(): Promise<void> {
    this.#draining = true;
    const { board, leases } = this.#parts;
    await this.#announce().catch((error) => this.#parts.failed('announcing this node', error));
    const members = await board.list().catch(() => this.#members);
    const others = members.filter(({ id }) => id !== this.#parts.self.id);
    this.#assignment = new Assignment(others, this.#parts.shardCount);
    await this.#handingOver;
    await this.#handOverAll(leases.held);
    await this.#passOn();
  }

  /** Stops all periodic work and withdraws the node. Leases that it still has run out. */
  async stop(): Promise<void> {
    for (const cancel of this.#cancels) cancel();
    await this.#parts.board.withdraw(this.#parts.self).catch(() => {});
    if (this.#draining) await this.#passOn();
  }

  /** Hands over shards that other nodes gave to this one before they read that it is leaving. */
  async #passOn(): Promise<void> {
    const { server, leases, self, shardCount, failed } = this.#parts;
    if (this.#duplicates.found !== null) return;
    try {
      const owners = await server.owners(shardCount);
      const kept = [...owners].filter(([, owner]) => owner === self.id).map(([shard]) => shard);
      await Promise.all(kept.map((shard) => this.#acquire(shard)));
      await this.#handOverAll(leases.held);
    } catch (error) {
      failed('passing shards on', error);
    }
  }

  #every(delayMs: number, what: string, step: () => Promise<void>): void {
    const { clock, failed } = this.#parts;
    this.#cancels.push(repeat(clock, delayMs, () => step().catch((error) => failed(what, error))));
  }

  async #announce(): Promise<void> {
    const { board, self, timings, shardCount, hasStore, isClockRight, monotonicMs } = this.#parts;
    const draining = this.#draining || !hasStore() || !isClockRight();
    const clockAheadMs = this.#parts.clockAheadMs();
    const announcement = { ...self, shardCount, draining, ...(clockAheadMs === null ? {} : { clockAheadMs }) };
    const sentAt = monotonicMs();
    const until = await board.announce(announcement, timings.memberTtlMs, this.#duplicates.heldUntil);
    this.#duplicates.announced(until, sentAt);
  }

  async #look(): Promise<void> {
    const { board, server, leases, shardCount, monotonicMs, timings, self } = this.#parts;
    const readAt = monotonicMs();
    const [members, owners] = await Promise.all([board.list(), server.owners(shardCount)]);
    leases.note(owners, shardCount, readAt);
    this.#members = members;
    this.#lookedAt = readAt;
    const duplicate = this.#duplicates.look(members, readAt);
    if (this.#draining) return;
    if (duplicate !== null || !this.#parts.isClockRight()) {
      const heirs = duplicate === null ? members.filter(({ id }) => id !== self.id) : [];
      this.#assignment = new Assignment(heirs, shardCount);
      this.#handingOver = this.#handOverAll(leases.held);
      return;
    }
    if (this.#assignment?.signature !== signatureOf(members)) {
      this.#assignment = new Assignment(members, shardCount);
      this.#changedAt = readAt;
    }
    const assignment = this.#assignment;
    const held = new Set(leases.held);
    const wanted: number[] = [];
    const unwanted: number[] = [];
    for (let shard = 0; shard < shardCount; shard++) {
      const owner = owners.get(shard) ?? null;
      const desired = assignment.of(shard, held.has(shard) ? self.id : owner);
      if (held.has(shard)) {
        if (desired !== self.id && desired !== null) unwanted.push(shard);
      } else if (owner === self.id || (owner === null && desired === self.id)) wanted.push(shard);
    }
    await Promise.all(wanted.map((shard) => this.#acquire(shard)));
    if (readAt - this.#changedAt >= timings.quietMs) this.#handingOver = this.#handOverAll(unwanted);
  }

  async #acquire(shard: number): Promise<void> {
    try {
      const { held } = await this.#parts.leases.acquire(shard);
      if (held) this.#parts.meter.moved('acquired');
    } catch (error) {
      this.#parts.failed('acquiring a shard', error);
    }
  }

  async #renew(): Promise<void> {
    const { leases, monotonicMs, meter } = this.#parts;
    // Includes shards that are being handed over: their last writes may take a while.
    const shards = leases.held;
    if (shards.length === 0) return;
    const late = new Set(shards.filter((shard) => leases.isRunOut(shard)));
    const began = monotonicMs();
    const tell = (isAnswered: boolean) => meter.renewed((monotonicMs() - began) / 1_000, isAnswered);
    const renewed = await leases.renew(shards).catch((error) => {
      tell(false);
      throw error;
    });
    tell(true);
    const heldNow = new Set(leases.held);
    for (const shard of shards)
      if (!renewed.has(shard) && !heldNow.has(shard)) this.#lost(shard, late.has(shard) ? 'ran_out' : 'missing');
  }

  /** Removes the ledgers of a lost shard from memory. The shard's new owner claims them. */
  #lost(shard: number, cause: LossCause): void {
    if (this.#movingAway.has(shard)) return;
    this.#parts.meter.lost(cause);
    this.#parts.meter.moved('lost');
    this.#parts.leave(shard, async () => {}).catch((error) => this.#parts.failed('dropping a lost shard', error));
  }

  async #handOverAll(shards: readonly number[]): Promise<void> {
    const before = this.#handingOver;
    const waiting = shards.filter((shard) => !this.#movingAway.has(shard));
    const work = async () => {
      for (let shard = waiting.shift(); shard !== undefined; shard = waiting.shift()) await this.#handOver(shard);
    };
    const free = this.#parts.timings.handOversMax - this.#movingAway.size;
    await Promise.all([before, ...Array.from({ length: Math.min(free, waiting.length) }, work)]);
  }

  async #handOver(shard: number): Promise<void> {
    const { leases, leave, meter, monotonicMs, self, failed, isClockRight } = this.#parts;
    if (this.#movingAway.has(shard)) return;
    const heir: NodeId | null = this.#assignment?.of(shard, null) ?? null;
    const isGivenUp = this.#draining || this.#duplicates.found !== null || !isClockRight();
    if (heir === self.id || (heir === null && !isGivenUp)) return;
    this.#movingAway.add(shard);
    const began = monotonicMs();
    try {
      await leave(shard, () => leases.release(shard, heir));
      meter.moved('handed_over');
      meter.handedOver((monotonicMs() - began) / 1_000);
    } catch (error) {
      failed('handing a shard over', error);
    } finally {
      this.#movingAway.delete(shard);
    }
  }
}
