/** Hashes in a full tile (https://c2sp.org/tlog-tiles). */
export const tileHashes = 256;
/** Bytes of a hash: SHA-256. */
export const hashBytes = 32;
/** Levels from here on are reserved. */
export const levelsMax = 64;

/** Where hashes stand: in the tree of a log, from `position` of a level on. */
export interface HashPlace {
  /** The origin of the log. */
  readonly owner: string;
  /** 0 for leaves. A hash of level l + 1 is the root of a full tile of level l. */
  readonly level: number;
  /** Of the first of these hashes in its level. */
  readonly position: number;
}

/**
 * Hashes of the trees of all logs, in tiles: tile `index` of a level holds the hashes from position 256 · index on.
 * They are a cache of the events: a hash that is missing here is computed from the events again.
 *
 * All writers write the same value at a position. When a put resolves, every later `tile` on every node finds its
 * hashes. A stored value that does not fit its place counts as not stored, and is reported as unreadable
 * (unreadable-record.ts) with the kind `tile`. Both methods may throw LedgerError `unavailable`. Arguments and results
 * are never shared with the store.
 */
export interface TileStore {
  /** Returns the hashes 0, 1, 2 … of a tile, and stops before the first one that is not stored. */
  tile(owner: string, level: number, index: number): Promise<Buffer[]>;
  /**
   * Stores hashes of one tile, the first one at position `from` of the level. They replace what an earlier put stored
   * at these positions. Once all of a tile of level 0 was put together, a put of a part of it may have no effect. After
   * LedgerError `unavailable` the hashes may or may not be stored: put them again. Throws RangeError if no store could
   * take them.
   */
  putHashes(owner: string, level: number, from: number, hashes: readonly Uint8Array[]): Promise<void>;
}
