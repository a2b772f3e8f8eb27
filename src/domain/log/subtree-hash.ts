import { CompactRange } from './compact-range.ts';
import { levelRangeOf, TILE_HASHES } from './tiles.ts';
import { EMPTY_ROOT, joinRightToLeft, nodeHash, perfectSubtrees, type Subtree } from './tree.ts';

/** Hashes of nodes, computed from hashes in memory or in tiles. */

/** The hash at a position of a level, both from 0. It throws where it has none. */
export type HashSource = (level: number, position: number) => Uint8Array;

/**
 * The hash of the node that covers this subtree. It reads each hash of the fewest that it can be computed from once.
 */
export function subtreeHash(subtree: Subtree, hashAt: HashSource): Uint8Array {
  const parts = perfectSubtrees(subtree).map((part) => {
    const { level, from, to } = levelRangeOf(part);
    return perfectRoot(Array.from({ length: to - from }, (_, at) => hashAt(level, from + at)));
  });
  return parts.length === 0 ? EMPTY_ROOT : joinRightToLeft(parts);
}

/** The compact range of the tree of `size` leaves. */
export function compactRangeAt(size: number, hashAt: HashSource): CompactRange {
  const parts = perfectSubtrees({ from: 0, to: size });
  return new CompactRange(
    size,
    parts.map((part) => subtreeHash(part, hashAt)),
  );
}

/** The root of a full tile: the hash that stands for its 256 hashes in the next level. RangeError if it is not full. */
export function tileRoot(hashes: readonly Uint8Array[]): Uint8Array {
  if (hashes.length !== TILE_HASHES)
    throw new RangeError(`A full tile has ${TILE_HASHES} hashes, not ${hashes.length}`);
  return perfectRoot(hashes);
}

/** The root over 2^n hashes. */
function perfectRoot(hashes: readonly Uint8Array[]): Uint8Array {
  let row = [...hashes];
  while (row.length > 1) {
    const above: Uint8Array[] = [];
    for (let at = 0; at < row.length; at += 2) above.push(nodeHash(part(row, at), part(row, at + 1)));
    row = above;
  }
  return part(row, 0);
}

function part(hashes: readonly Uint8Array[], at: number): Uint8Array {
  const hash = hashes[at];
  if (hash === undefined) throw new RangeError('The number of hashes is no power of two');
  return hash;
}
