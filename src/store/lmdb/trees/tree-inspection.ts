import { parseSignedHead } from '../../signed-heads.ts';
import type { StoredHashes, StoredSignedHead, TreeInspection, Walked } from '../../store-inspection.ts';
import { tileHashes } from '../../tile-store.ts';
import { splitHashes } from '../../tile-value.ts';
import type { Commits } from '../commits.ts';
import { placeOfTileKey, textOfKey, tileKey } from '../keys.ts';
import { allEntries } from '../ranges.ts';
import type { Tables } from '../tables.ts';
import { missingHash, ownerOfTile, parseTile } from './stored-tile.ts';

/** Reads the tables of the trees in the order of their keys, in pages. */
export function treeInspection(tables: Tables, commits: Commits): TreeInspection {
  return {
    async *hashes(): AsyncIterable<Walked<StoredHashes>> {
      for (const { key, value } of allEntries(tables.tiles)) {
        // Keys begin with a hash, so their first byte says how far the walk is.
        yield { found: storedHashes(tables, commits, key, value), share: (key[0] ?? 0) / 256 };
      }
    },
    async *signedHeads(): AsyncIterable<StoredSignedHead> {
      for (const { key, value } of allEntries(tables.signedHeads)) {
        const origin = textOfKey(key);
        yield { origin, head: origin === null ? null : parseSignedHead(origin, value) };
      }
    },
  };
}

function storedHashes(tables: Tables, commits: Commits, key: Uint8Array, value: Uint8Array): StoredHashes {
  const { level, index } = placeOfTileKey(key);
  const owner = ownerOfTile(value);
  const position = index * tileHashes;
  const isOwners = owner !== null && tileKey(owner, level, index).equals(key);
  const hashes = isOwners ? parseTile({ owner, level, position }, value) : null;
  return {
    table: 'tiles',
    key: Buffer.from(key).toString('hex'),
    owner: isOwners ? owner : null,
    level,
    position,
    hashes: hashes && splitHashes(hashes).map((hash) => (hash.equals(missingHash) ? null : hash)),
    remove: async () => {
      await commits.writeRepeatable('The store did not say whether the tile was removed.', () =>
        tables.tiles.remove(Buffer.from(key)),
      );
    },
  };
}
