import { type HashPlace, hashBytes, tileHashes } from '../../tile-store.ts';
import { formatHashes, parseHashes } from '../../tile-value.ts';

/**
 * A tile as LMDB stores it: the value of tile-value.ts, then the owner, which the key holds as a hash only, and the
 * length of the owner.
 */

const lengthBytes = 2;
const tileMaxBytes = tileHashes * hashBytes;

/** Stands in a tile where a hash is not stored, before others that are. No SHA-256 is this. */
export const missingHash = Buffer.alloc(hashBytes);

export function formatTile(place: HashPlace, hashes: Buffer): Buffer {
  const owner = Buffer.from(place.owner);
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt16BE(owner.length);
  return Buffer.concat([formatHashes(place, hashes), owner, length]);
}

/** Returns the hashes of a value, joined. null if the value does not fit its place. */
export function parseTile(place: HashPlace, value: Uint8Array): Buffer | null {
  const parts = splitTile(value);
  if (parts === null || parts.owner !== place.owner) return null;
  const hashes = parseHashes(place, parts.hashes);
  return hashes !== null && hashes.length <= tileMaxBytes ? hashes : null;
}

/** The owner that a value names, which is checked by nothing. null if the value names none. */
export function ownerOfTile(value: Uint8Array): string | null {
  return splitTile(value)?.owner ?? null;
}

function splitTile(value: Uint8Array): { readonly hashes: Buffer; readonly owner: string } | null {
  const bytes = Buffer.from(value);
  if (bytes.length < lengthBytes) return null;
  const end = bytes.length - lengthBytes;
  const start = end - bytes.readUInt16BE(end);
  return start < 0 ? null : { hashes: bytes.subarray(0, start), owner: bytes.toString('utf8', start, end) };
}
