import type { Acquired, LeaseServer } from '../../cluster/placement/lease-server.ts';
import { type Announcement, isSameRun, type MemberBoard, type Order } from '../../cluster/placement/members.ts';
import type { NodeId } from '../../src/actors/routing/placement.ts';
import type { SimulatedTime } from './time.ts';
import { request, type WireParts } from './wire.ts';

interface Lease {
  readonly owner: NodeId;
  /** '' where it is kept for an heir. */
  readonly token: string;
  readonly until: number;
}

/** Leases and members as Redis keeps them: one step after the other, gone when their time is up or all is wiped. */
export class SimulatedRedis {
  readonly #time: SimulatedTime;
  #leases = new Map<number, Lease>();
  #members = new Map<NodeId, { readonly announcement: Announcement; readonly until: number }>();
  readonly #orders = new Map<NodeId, Order>();
  isDown = false;
  /** Called when a request comes while it is down. */
  missed: () => void = () => {};

  constructor(time: SimulatedTime) {
    this.#time = time;
  }

  /** Answers whether there was anything to forget. */
  wipe(): boolean {
    const had = this.#leases.size + this.#members.size > 0;
    this.#leases = new Map();
    this.#members = new Map();
    return had;
  }

  /** Somebody who is no node announces another run under the id of each member. */
  forgeRuns(lastMs: number): void {
    for (const [id, { announcement }] of this.#members)
      this.#members.set(id, {
        announcement: { ...announcement, startedAt: 'forged' },
        until: this.#time.now + lastMs,
      });
  }

  order(id: NodeId, order: Order | null): boolean {
    const hadOrder = this.#orders.delete(id);
    if (order !== null) this.#orders.set(id, order);
    return hadOrder;
  }

  /** As one node reaches it. */
  client(wire: WireParts): LeaseServer & MemberBoard {
    const ask = <T>(work: () => T): Promise<T> =>
      request(
        { ...wire, state: this.isDown ? { ...wire.state, cut: true, met: this.missed } : wire.state },
        work,
        () => new Error('Redis does not answer'),
      );
    return {
      acquire: ({ shard, token }, owner, ttlMs) => ask(() => this.#acquire(shard, token, owner, ttlMs)),
      renew: (leases, ttlMs) =>
        ask(() => {
          const renewed = new Set<number>();
          for (const { shard, token } of leases) {
            const current = this.#current(shard);
            if (current?.token !== token) continue;
            this.#leases.set(shard, { ...current, until: this.#time.now + ttlMs });
            renewed.add(shard);
          }
          return renewed;
        }),
      release: ({ shard, token }, heir, heirMs) =>
        ask(() => {
          if (this.#current(shard)?.token !== token) return;
          if (heir === null) this.#leases.delete(shard);
          else this.#leases.set(shard, { owner: heir, token: '', until: this.#time.now + heirMs });
        }),
      owner: (shard) => ask(() => this.#current(shard)?.owner ?? null),
      owners: (shardCount) =>
        ask(() => {
          const owners = new Map<number, NodeId>();
          for (let shard = 0; shard < shardCount; shard++) {
            const current = this.#current(shard);
            if (current !== null) owners.set(shard, current.owner);
          }
          return owners;
        }),
      announce: (announcement, ttlMs, heldUntil = 0) =>
        ask(() => {
          const current = this.#members.get(announcement.id);
          const { now } = this.#time;
          const until = now + ttlMs;
          const isThere = current !== undefined && current.until > now && current.until <= until;
          const isTaken = isThere && !isSameRun(current.announcement, announcement);
          const isHeld = now < heldUntil && heldUntil <= until;
          if (isTaken && !isHeld) return null;
          this.#members.set(announcement.id, { announcement, until });
          return until;
        }),
      withdraw: (run) =>
        ask(() => {
          const current = this.#members.get(run.id);
          if (current !== undefined && isSameRun(current.announcement, run)) this.#members.delete(run.id);
        }),
      list: () =>
        ask(() =>
          [...this.#members.values()]
            .filter(({ until }) => until > this.#time.now)
            .map(({ announcement }) => ({ ...announcement, order: this.#orders.get(announcement.id) ?? null }))
            .sort((a, b) => (a.id < b.id ? -1 : 1)),
        ),
      order: (id, order) => ask(() => this.order(id, order)),
    };
  }

  #acquire(shard: number, token: string, owner: NodeId, ttlMs: number): Acquired {
    const current = this.#current(shard);
    const isFree = current === null || current.token === token || (current.token === '' && current.owner === owner);
    if (!isFree) return { held: false, owner: current.owner };
    this.#leases.set(shard, { owner, token, until: this.#time.now + ttlMs });
    return { held: true };
  }

  #current(shard: number): Lease | null {
    const lease = this.#leases.get(shard);
    if (lease === undefined || lease.until <= this.#time.now) return null;
    const isForNobody = lease.token === '' && (this.#members.get(lease.owner)?.until ?? 0) <= this.#time.now;
    return isForNobody ? null : lease;
  }
}
