import type { NodeId } from '../../src/actors/routing/placement.ts';

/** To lose a race for a shard is a value, not an error. */
export type Acquired = { readonly held: true } | { readonly held: false; readonly owner: NodeId | null };

export interface HeldLease {
  readonly shard: number;
  /** 128 random bits of one acquisition, hex. */
  readonly token: string;
}

/**
 * Stores the leases of all nodes. Each method is atomic. A method that rejects may have taken effect. No answer to a
 * client rests on a lease: leases only keep nodes out of each other's way.
 */
export interface LeaseServer {
  /** Takes a shard for `ttlMs` if it is free, kept for this node as heir, or held with the same token. */
  acquire(lease: HeldLease, owner: NodeId, ttlMs: number): Promise<Acquired>;
  /** Renews the leases that still exist, for `ttlMs` from now. Returns their shards. */
  renew(leases: readonly HeldLease[], ttlMs: number): Promise<ReadonlySet<number>>;
  /**
   * Releases a lease if it still exists. For `heirMs` the heir is named as the owner, and only it may acquire the
   * shard, as long as it is a member.
   */
  release(lease: HeldLease, heir: NodeId | null, heirMs: number): Promise<void>;
  /** Returns the owner or heir of a shard, or null if there is none. */
  owner(shard: number): Promise<NodeId | null>;
  /** Returns the owner or heir of every shard below `shardCount` that has one. */
  owners(shardCount: number): Promise<ReadonlyMap<number, NodeId>>;
}
