import type { NodeId, Placement } from '../../src/actors/routing/placement.ts';
import type { Acquired, HeldLease, LeaseServer } from './lease-server.ts';
import type { PlacementTimings } from './timings.ts';

const tokenBytes = 16;
/** How long a known owner of another node's shard is used before it is read again. */
const knownFreshMs = 2_000;

interface LeasesParts {
  readonly self: NodeId;
  readonly server: LeaseServer;
  readonly timings: PlacementTimings;
  /** A clock that never goes back, and also counts while the process is paused. ms. */
  readonly monotonicMs: () => number;
  readonly random: (bytes: number) => Uint8Array;
}

interface Held {
  readonly token: string;
  /** Until when the lease is valid by this node's own count, from before its request was sent. Monotonic, ms. */
  validUntil: number;
}

interface Known {
  readonly owner: NodeId | null;
  readonly readAt: number;
}

/**
 * The leases of one node, as a placement. While the lease server cannot be reached, owners keep their shards, and other
 * nodes use the owners that they knew last.
 *
 * Invariants:
 * - A shard is held only after the server has confirmed it, never because a request was sent.
 * - A lease that the server does not know at a renewal is lost. It is never acquired again with the same token.
 */
export class Leases implements Placement {
  readonly #parts: LeasesParts;
  readonly #held = new Map<number, Held>();
  /** Tokens of acquisitions without an answer. They are used again, because the server may have stored them. */
  readonly #unanswered = new Map<number, string>();
  readonly #known = new Map<number, Known>();
  /** When the last renewal was sent, and the last failed one before which the node was awake. Monotonic, ms. */
  #renewalSentAt = Number.NEGATIVE_INFINITY;
  #askedInVainAt = Number.NEGATIVE_INFINITY;
  readonly #heirs = new Map<number, { readonly heir: NodeId; readonly until: number }>();

  constructor(parts: LeasesParts) {
    this.#parts = parts;
  }

  /** Shards that this node held when the server last answered. */
  get held(): readonly number[] {
    return [...this.#held.keys()];
  }

  /** Whether a lease has run out by this node's own count: the node slept, or the server could not be reached. */
  isRunOut(shard: number): boolean {
    const held = this.#held.get(shard);
    return held !== undefined && this.#parts.monotonicMs() >= held.validUntil;
  }

  /**
   * Whether this node runs a shard, as far as it knows without the server. Once the lease may have run out, this is
   * true only if the server could not be reached since. The first failure after the node slept does not count for that.
   */
  holds(shard: number): boolean {
    const held = this.#held.get(shard);
    if (held === undefined) return false;
    const now = this.#parts.monotonicMs();
    if (now < held.validUntil) return true;
    return this.#askedInVainAt >= held.validUntil && now - this.#askedInVainAt < this.#parts.timings.leaseTtlMs;
  }

  /** Takes a shard that is free or that this node already holds. */
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

  /** Extends the leases of these shards. Returns those that this node still holds. */
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

  /** Notes the owners of all shards. `readAt`: when the request was sent, monotonic, ms. */
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
