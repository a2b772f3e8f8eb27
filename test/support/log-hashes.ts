import { type HashSource, tileRoot } from '../../src/domain/log/subtree-hash.ts';
import { TILE_HASHES } from '../../src/domain/log/tiles.ts';

/** The levels of a tree in memory. */
export class MemoryHashes {
  readonly #levels: Uint8Array[][] = [];

  constructor(leafHashes: Iterable<Uint8Array> = []) {
    for (const hash of leafHashes) this.append(hash);
  }

  append(hash: Uint8Array, level = 0): void {
    const hashes = this.#levels[level] ?? [];
    this.#levels[level] = hashes;
    hashes.push(hash);
    if (hashes.length % TILE_HASHES === 0) this.append(tileRoot(hashes.slice(-TILE_HASHES)), level + 1);
  }

  readonly hashAt: HashSource = (level, position) => {
    const hash = this.#levels[level]?.[position];
    if (hash === undefined) throw new RangeError(`No hash at ${level}/${position}`);
    return hash;
  };
}
