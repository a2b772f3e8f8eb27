/** The name of a node, unique in its cluster for the life of its process. */
export type NodeId = string;

/** Which node should run a shard. No answer depends on it: the claim in the store decides who writes. */
export interface Placement {
  /** The node that holds a shard. null if none is known. May reject if the placement service cannot be reached. */
  locate(shard: number): Promise<NodeId | null>;
}

/** The placement of a node that stands alone. */
export function localPlacement(self: NodeId): Placement {
  return { locate: async () => self };
}
