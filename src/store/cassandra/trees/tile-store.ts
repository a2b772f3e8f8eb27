import { type HashPlace, hashBytes, type TileStore, tileHashes } from '../../tile-store.ts';
import { formatHashes, parseHashes, splitHashes, tellUnfit } from '../../tile-value.ts';
import { checkHashes } from '../../write-checks.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { bytesOf, type CqlSession, numberOf } from '../session/session.ts';

const TILE = preparedAtStart('SELECT value FROM tile WHERE owner = ? AND block = ? AND n = ?');
const HASHES = preparedAtStart(
  'SELECT n, value FROM tile_hash WHERE owner = ? AND level = ? AND block = ? AND n >= ? AND n <= ?',
);
const PUT_TILE = preparedAtStart('INSERT INTO tile (owner, block, n, value) VALUES (?, ?, ?, ?)');
const PUT_HASH = preparedAtStart('INSERT INTO tile_hash (owner, level, block, n, value) VALUES (?, ?, ?, ?, ?)');

/** Full tiles of level 0 in a partition. */
const blockTiles = 64;
/** Single hashes in a partition. */
const blockHashes = blockTiles * tileHashes;

/**
 * The tiles of a keyspace. A full tile of level 0 is one row of `tile`. All other hashes are rows of `tile_hash`, so
 * that writers of one tile need not read it.
 */
export class CassandraTileStore implements TileStore {
  readonly #session: CqlSession;

  constructor(session: CqlSession) {
    this.#session = session;
  }

  async tile(owner: string, level: number, index: number): Promise<Buffer[]> {
    const place = { owner, level, position: index * tileHashes };
    return (level === 0 ? await this.#fullTile(place) : null) ?? this.#singleHashes(place);
  }

  async #fullTile(place: HashPlace): Promise<Buffer[] | null> {
    const n = place.position / tileHashes;
    const params = [keyText(place.owner), tileBlock(n), BigInt(n)];
    const [row] = await this.#session.read({ cql: TILE, params });
    const value = bytesOf(row, 'value');
    if (value === null) return null;
    const hashes = fullTileIn(place, value);
    if (hashes === null) tellUnfit(place);
    return hashes;
  }

  async #singleHashes({ owner, level, position }: HashPlace): Promise<Buffer[]> {
    const [from, to] = [BigInt(position), BigInt(position + tileHashes - 1)];
    const params = [keyText(owner), level, hashBlock(position), from, to];
    const found: Buffer[] = [];
    for (const row of await this.#session.read({ cql: HASHES, params }, { pageRows: tileHashes })) {
      const place = { owner, level, position: position + found.length };
      const value = bytesOf(row, 'value');
      if (value === null || numberOf(row, 'n') !== place.position) break;
      const hash = singleHashIn(place, value);
      if (hash === null) {
        tellUnfit(place);
        break;
      }
      found.push(hash);
    }
    return found;
  }

  async putHashes(owner: string, level: number, from: number, hashes: readonly Uint8Array[]): Promise<void> {
    const place = { owner, level, position: from };
    checkHashes(place, hashes);
    if (level === 0 && hashes.length === tileHashes) {
      const n = from / tileHashes;
      const params = [keyText(owner), tileBlock(n), BigInt(n), formatHashes(place, Buffer.concat(hashes))];
      await this.#session.write([{ cql: PUT_TILE, params }]);
      return;
    }
    await this.#session.write(
      hashes.map((hash, at) => {
        const n = from + at;
        const value = formatHashes({ ...place, position: n }, hash);
        return { cql: PUT_HASH, params: [keyText(owner), level, hashBlock(n), BigInt(n), value] };
      }),
    );
  }
}

export function tileBlock(n: number): bigint {
  return BigInt(Math.floor(n / blockTiles));
}

export function hashBlock(n: number): bigint {
  return BigInt(Math.floor(n / blockHashes));
}

/** The hashes of a row of `tile`. null if the value does not fit its place. */
export function fullTileIn(place: HashPlace, value: Uint8Array): Buffer[] | null {
  const hashes = parseHashes(place, value);
  return hashes?.length === tileHashes * hashBytes ? splitHashes(hashes) : null;
}

/** The hash of a row of `tile_hash`. null if the value does not fit its place. */
export function singleHashIn(place: HashPlace, value: Uint8Array): Buffer | null {
  const hash = parseHashes(place, value);
  return hash?.length === hashBytes ? hash : null;
}
