import type { NodeId, Placement } from './placement.ts';

/** Every shard runs here: the placement of a node that stands alone. */
export function localPlacement(self: NodeId): Placement {
  return {
    acquire: async () => ({ held: true }),
    renew: async (shards) => new Set(shards),
    release: async () => {},
    locate: async () => self,
  };
}
