import type { NodeId } from '../../src/actors/routing/placement.ts';

/** To lose a race for a shard is a value, not an error. */
export type Acquired = { readonly held: true } | { readonly held: false; readonly owner: NodeId | null };

export interface HeldLease {
  readonly shard: number;
  /** 128 random bits of one acquisition, hex. */
  readonly token: string;
}

/**
 * Stores the leases of all nodes of a cluster. Each method is atomic. A method that rejects may have taken effect.
 *
 * No answer to a client ever rests on a lease. Leases only keep nodes out of each other's way.
 */
export interface LeaseServer {
  /**
   * Takes a shard for `ttlMs`, if it is free, if it is kept for this node as its heir, or if this node holds it with
   * the same token. Otherwise returns the owner.
   */
  acquire(lease: HeldLease, owner: NodeId, ttlMs: number): Promise<Acquired>;
  /**
   * Renews those of the leases that still exist, for `ttlMs` from now. Returns their shards. A lost lease stays lost.
   */
  renew(leases: readonly HeldLease[], ttlMs: number): Promise<ReadonlySet<number>>;
  /**
   * Releases a lease if it still exists. If there is an heir, it is named as the owner for `heirMs`, and only it may
   * acquire the shard until then. The heir has this right only while it is a member, so that an heir that dies delays
   * no other node.
   */
  release(lease: HeldLease, heir: NodeId | null, heirMs: number): Promise<void>;
  /** Returns the owner or heir of a shard, or null if there is none. */
  owner(shard: number): Promise<NodeId | null>;
  /** Returns the owner or heir of every shard below `shardCount` that has one. */
  owners(shardCount: number): Promise<ReadonlyMap<number, NodeId>>;
}
