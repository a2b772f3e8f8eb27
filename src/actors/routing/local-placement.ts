import type { NodeId, Placement } from './placement.ts';

/** Every shard runs here: the placement of a node that stands alone. */
export function localPlacement(self: NodeId): Placement {
  return { locate: async () => self };
}
