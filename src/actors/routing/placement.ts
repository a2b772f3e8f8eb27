/** The name of a node, unique in its cluster for the life of its process. */
export type NodeId = string;

/** To lose a race for a shard is a value, not an error. */
export type Acquired = { readonly held: true } | { readonly held: false; readonly owner: NodeId | null };

/**
 * Which node should run a shard. Placement only keeps nodes out of each other's way: no answer to a client depends on
 * it, because the claim in the store decides. All methods may fail with any error if the placement service cannot be
 * reached.
 */
export interface Placement {
  /** Takes a shard that is free or that this node already holds. */
  acquire(shard: number): Promise<Acquired>;
  /** Extends the leases of these shards. Returns those that this node still holds. */
  renew(shards: readonly number[]): Promise<ReadonlySet<number>>;
  /** Gives a shard up. `heir` is named as the owner to the next node that asks. */
  release(shard: number, heir: NodeId | null): Promise<void>;
  /** The node that holds a shard, as far as known. Resolves with null if no node does. */
  locate(shard: number): Promise<NodeId | null>;
}
