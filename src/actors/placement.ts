/** Name of a node, unique in its cluster for the life of its process. */
export type NodeId = string;

/** Losing a race for a shard is a value, not an error. */
export type Acquired = { readonly held: true } | { readonly held: false; readonly owner: NodeId | null };

/**
 * Who should run a shard. Placement only keeps nodes out of each other's way: no answer to a client ever rests on it
 * (the claim in the store decides). All methods may fail with any error when the placement service is out of reach.
 */
export interface Placement {
  /** Takes a shard that nobody holds, or that this node holds already. */
  acquire(shard: number): Promise<Acquired>;
  /** Of these shards, the ones that this node still holds, for another lease time. */
  renew(shards: readonly number[]): Promise<ReadonlySet<number>>;
  /** Gives a shard up; `heir` is told to whoever asks next. */
  release(shard: number, heir: NodeId | null): Promise<void>;
  /** Who holds a shard, as far as is known; null if nobody does. */
  locate(shard: number): Promise<NodeId | null>;
}
