import { perfectSubtrees, type Subtree } from './tree.ts';

/**
 * Which stored hashes a tree is computed from, and in which tiles they are. Level 0 holds the hashes of the leaves. A
 * hash of level l + 1 covers 256 hashes of level l. A tile is 256 hashes of one level, as in c2sp.org/tlog-tiles.
 */

export const TILE_HASHES = 256;

/** Positions `from` to `to` (excluded) of a level. */
interface LevelRange {
  readonly level: number;
  readonly from: number;
  readonly to: number;
}

/** The first `hashes` hashes of the tile at `index` of its level. */
export interface TilePart {
  readonly level: number;
  readonly index: number;
  readonly hashes: number;
}

interface HashesNeeded {
  /** In order of level and index. Those of level 0 are full at the size that was asked for. */
  readonly tiles: readonly TilePart[];
  /** Leaves of the unfinished last tile of level 0: indices `from` to `to` (excluded). null: none. */
  readonly rows: { readonly from: number; readonly to: number } | null;
}

/** How many hashes a level has in a tree of `size` leaves. */
export function levelSize(level: number, size: number): number {
  return Math.floor(size / TILE_HASHES ** level);
}

/**
 * What subtreeHash reads for these subtrees, as parts of tiles. `size`: tiles of level 0 that are not full at this size
 * are read as rows.
 */
export function hashesNeeded(subtrees: readonly Subtree[], size: number): HashesNeeded {
  const tiles = new Map<string, TilePart>();
  let rows: HashesNeeded['rows'] = null;
  for (const subtree of subtrees.flatMap(perfectSubtrees)) {
    const { level, from, to } = levelRangeOf(subtree);
    const index = Math.floor(from / TILE_HASHES);
    if (level === 0 && index === levelSize(1, size)) {
      const before: Subtree = rows ?? { from, to };
      rows = { from: Math.min(from, before.from), to: Math.max(to, before.to) };
    } else {
      const key = `${level}/${index}`;
      const hashes = Math.max(to - index * TILE_HASHES, tiles.get(key)?.hashes ?? 0);
      tiles.set(key, { level, index, hashes });
    }
  }
  return { tiles: [...tiles.values()].sort((a, b) => a.level - b.level || a.index - b.index), rows };
}

/** Which hashes make up a perfect subtree: the fewest, from the highest level that has them. At most 128. */
export function levelRangeOf({ from, to }: Subtree): LevelRange {
  let level = 0;
  for (let leaves = to - from; leaves >= TILE_HASHES; leaves /= TILE_HASHES) level += 1;
  const span = TILE_HASHES ** level;
  return { level, from: from / span, to: to / span };
}
