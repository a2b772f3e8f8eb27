import type { Acquired, NodeId, Placement } from '../../src/actors/placement.ts';
import type { HeldLease, LeaseServer } from './lease-server.ts';
import type { PlacementTimings } from './timings.ts';

const tokenBytes = 16;
/** What was read of other nodes' shards is used for so long before it is read again. */
const knownFreshMs = 2_000;

export interface LeasesParts {
  readonly self: NodeId;
  readonly server: LeaseServer;
  readonly timings: PlacementTimings;
  /** Never goes back, and goes on while the process is paused. */
  readonly monotonicMs: () => number;
  readonly random: (bytes: number) => Uint8Array;
}

interface Held {
  readonly token: string;
  /** Monotonic, counted from before the request that made it so was sent. */
  validUntil: number;
}

interface Known {
  readonly owner: NodeId | null;
  readonly readAt: number;
}

/**
 * The leases of one node, as a placement.
 *
 * Invariants: a shard is held only after the server said so, never because a request was sent; a lease that the server does not know
 * at a renewal is gone, and never made again under its token. While the server cannot be reached, owners go on, and everybody
 * else believes what was known last.
 */
export class Leases implements Placement {
  readonly #parts: LeasesParts;
  readonly #held = new Map<number, Held>();
  /** Tokens of acquisitions that nobody answered: with them the shard may be ours already. */
  readonly #unanswered = new Map<number, string>();
  readonly #known = new Map<number, Known>();
  /** When the newest renewal was sent, and the newest that nobody answered though the node was awake before it. */
  #renewalSentAt = Number.NEGATIVE_INFINITY;
  #askedInVainAt = Number.NEGATIVE_INFINITY;
  readonly #heirs = new Map<number, { readonly heir: NodeId; readonly until: number }>();

  constructor(parts: LeasesParts) {
    this.#parts = parts;
  }

  /** Shards that this node holds, or held when the server could last be asked. */
  get held(): readonly number[] {
    return [...this.#held.keys()];
  }

  /** Whether a shard that is held was not renewed in time, by this node's own count: it slept, or the server could not be asked. */
  isRunOut(shard: number): boolean {
    const held = this.#held.get(shard);
    return held !== undefined && this.#parts.monotonicMs() >= held.validUntil;
  }

  /**
   * Whether this node runs a shard, as far as it knows without asking. Once its lease may have run out, as when the node slept, only if the
   * server could not be asked since. Who has just woken up may fail to ask for that reason alone: the next failure counts.
   */
  holds(shard: number): boolean {
    const held = this.#held.get(shard);
    if (held === undefined) return false;
    const now = this.#parts.monotonicMs();
    if (now < held.validUntil) return true;
    return this.#askedInVainAt >= held.validUntil && now - this.#askedInVainAt < this.#parts.timings.leaseTtlMs;
  }

  async acquire(shard: number): Promise<Acquired> {
    const { self, server, timings, monotonicMs } = this.#parts;
    const token = this.#held.get(shard)?.token ?? this.#unanswered.get(shard) ?? this.#newToken();
    this.#unanswered.set(shard, token);
    const sentAt = monotonicMs();
    const acquired = await server.acquire({ shard, token }, self, timings.leaseTtlMs);
    this.#unanswered.delete(shard);
    if (acquired.held) {
      this.#held.set(shard, { token, validUntil: this.#validFrom(sentAt) });
      this.#heirs.delete(shard);
    } else {
      this.#held.delete(shard);
      this.#known.set(shard, { owner: acquired.owner, readAt: sentAt });
    }
    return acquired;
  }

  async renew(shards: readonly number[]): Promise<ReadonlySet<number>> {
    const { server, timings, monotonicMs } = this.#parts;
    const asked = new Map<number, Held>();
    for (const shard of shards) {
      const held = this.#held.get(shard);
      if (held !== undefined) asked.set(shard, held);
    }
    const leases: HeldLease[] = Array.from(asked, ([shard, { token }]) => ({ shard, token }));
    if (leases.length === 0) return new Set();
    const sentAt = monotonicMs();
    const wasAwake = sentAt < this.#validFrom(this.#renewalSentAt);
    this.#renewalSentAt = sentAt;
    const renewed = await server.renew(leases, timings.leaseTtlMs).catch((error) => {
      if (wasAwake) this.#askedInVainAt = sentAt;
      throw error;
    });
    for (const [shard, held] of asked) {
      if (renewed.has(shard)) held.validUntil = Math.max(held.validUntil, this.#validFrom(sentAt));
      else if (this.#held.get(shard) === held) this.#held.delete(shard);
    }
    return renewed;
  }

  async release(shard: number, heir: NodeId | null): Promise<void> {
    const { server, timings, monotonicMs } = this.#parts;
    const held = this.#held.get(shard);
    this.#held.delete(shard);
    this.#known.delete(shard);
    if (heir !== null) this.#heirs.set(shard, { heir, until: monotonicMs() + timings.heirMs });
    if (held !== undefined) await server.release({ shard, token: held.token }, heir, timings.heirMs);
  }

  async locate(shard: number): Promise<NodeId | null> {
    const { self, server, monotonicMs } = this.#parts;
    const now = monotonicMs();
    const held = this.#held.get(shard);
    if (held !== undefined && now < held.validUntil) return self;
    const heir = this.#heirs.get(shard);
    if (heir !== undefined && now < heir.until) return heir.heir;
    const known = this.#known.get(shard);
    if (held === undefined && known !== undefined && now - known.readAt < knownFreshMs) return known.owner;
    try {
      const owner = await server.owner(shard);
      this.#known.set(shard, { owner, readAt: now });
      return owner;
    } catch {
      return this.#held.has(shard) ? self : (this.#known.get(shard)?.owner ?? null);
    }
  }

  /** What was read of all shards, by a read sent at `readAt` (monotonic). */
  note(owners: ReadonlyMap<number, NodeId>, shardCount: number, readAt: number): void {
    for (let shard = 0; shard < shardCount; shard++) {
      const known = this.#known.get(shard);
      if (known === undefined || known.readAt <= readAt)
        this.#known.set(shard, { owner: owners.get(shard) ?? null, readAt });
    }
    for (const [shard, { until }] of this.#heirs) if (until <= readAt) this.#heirs.delete(shard);
  }

  #validFrom(sentAt: number): number {
    return sentAt + this.#parts.timings.leaseTtlMs - this.#parts.timings.marginMs;
  }

  #newToken(): string {
    return Buffer.from(this.#parts.random(tokenBytes)).toString('hex');
  }
}
