import { KeyedMutex } from '../../keyed-mutex.ts';
import { hashBytes, type TileStore, tileHashes } from '../../tile-store.ts';
import { splitHashes, tellUnfit } from '../../tile-value.ts';
import { checkHashes } from '../../write-checks.ts';
import type { Commits } from '../commits.ts';
import { tileKey } from '../keys.ts';
import type { Tables } from '../tables.ts';
import { formatTile, missingHash, parseTile } from './stored-tile.ts';

const noHash = Buffer.alloc(0);

/**
 * The tiles of one LMDB environment, a value each. A put of a part of a tile reads the tile and writes it whole, under
 * a mutex of the tile.
 */
export class LmdbTileStore implements TileStore {
  readonly #openTables: Tables;
  readonly #commits: Commits;
  readonly #mutex = new KeyedMutex(null);

  constructor(tables: Tables, commits: Commits) {
    this.#openTables = tables;
    this.#commits = commits;
  }

  async tile(owner: string, level: number, index: number): Promise<Buffer[]> {
    const hashes = splitHashes(this.#stored(owner, level, index));
    const end = hashes.findIndex((hash) => hash.equals(missingHash));
    return end === -1 ? hashes : hashes.slice(0, end);
  }

  async putHashes(owner: string, level: number, from: number, hashes: readonly Uint8Array[]): Promise<void> {
    checkHashes({ owner, level, position: from }, hashes);
    const joined = Buffer.concat(hashes);
    const index = Math.floor(from / tileHashes);
    const key = tileKey(owner, level, index);
    await this.#mutex.take(key.toString('latin1'), 'write', async () => {
      // Checked before the tile is read, because after a failed write LMDB may refuse reads too.
      this.#commits.checkUsable();
      const before = hashes.length === tileHashes ? noHash : this.#stored(owner, level, index);
      const at = (from % tileHashes) * hashBytes;
      const after = Buffer.alloc(Math.max(before.length, at + joined.length));
      after.set(before);
      after.set(joined, at);
      const value = formatTile({ owner, level, position: index * tileHashes }, after);
      await this.#commits.writeRepeatable('The store did not say whether the hashes were written.', () =>
        this.#openTables.tiles.put(key, value),
      );
    });
  }

  /** The hashes of a tile, joined. None if there is no such tile, or it does not fit its place, which is reported. */
  #stored(owner: string, level: number, index: number): Buffer {
    this.#commits.checkReadable();
    const { tiles } = this.#openTables;
    tiles.resetReadTxn();
    const value = tiles.get(tileKey(owner, level, index));
    if (value === undefined) return noHash;
    const place = { owner, level, position: index * tileHashes };
    const hashes = parseTile(place, value);
    if (hashes === null) tellUnfit(place);
    return hashes ?? noHash;
  }
}
