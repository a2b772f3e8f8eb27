import type { Acquired, NodeId } from '../../src/actors/placement.ts';

export interface HeldLease {
  readonly shard: number;
  /** 128 random bits of one acquisition, hex. */
  readonly token: string;
}

/**
 * Where leases are kept, for all nodes of a cluster. Each method is one step there: it happens whole or not at all. A method that fails
 * may have happened. Nothing here is ever a reason to answer a client; it only keeps nodes out of each other's way.
 */
export interface LeaseServer {
  /** Takes a shard for `ttlMs` if nobody has it, if it is kept for this node as an heir, or if the token is the one it is held with. */
  acquire(lease: HeldLease, owner: NodeId, ttlMs: number): Promise<Acquired>;
  /** Of these leases those that still stand, for another `ttlMs`. What is gone stays gone. */
  renew(leases: readonly HeldLease[], ttlMs: number): Promise<ReadonlySet<number>>;
  /**
   * Gives a lease up if it stands; `heir` is named as the owner for `heirMs` while it is a member, and alone may acquire it until then: an heir
   * that dies before it takes the shard holds nobody up.
   */
  release(lease: HeldLease, heir: NodeId | null, heirMs: number): Promise<void>;
  /** Owner or heir of a shard; null if there is none. */
  owner(shard: number): Promise<NodeId | null>;
  /** Owner or heir of every shard below `shardCount` that has one. */
  owners(shardCount: number): Promise<ReadonlyMap<number, NodeId>>;
}
