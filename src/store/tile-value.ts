import { sha256Buffer } from '../domain/keys/hash-buffer.ts';
import { type HashPlace, hashBytes } from './tile-store.ts';
import { tellUnreadable } from './unreadable-record.ts';

/**
 * The stored form of hashes: a checksum of their place and themselves, then the hashes. So a value that was damaged, or
 * that belongs to another place, is told apart from a sound one.
 */

const checksumBytes = 16;

export function formatHashes(place: HashPlace, hashes: Uint8Array): Buffer {
  return Buffer.concat([checksum(place, hashes), hashes]);
}

/** Returns the hashes of a value, joined. null if the value does not fit its place. */
export function parseHashes(place: HashPlace, value: Uint8Array): Buffer | null {
  const bytes = Buffer.from(value);
  const hashes = bytes.subarray(checksumBytes);
  if (hashes.length === 0 || hashes.length % hashBytes !== 0) return null;
  return checksum(place, hashes).equals(bytes.subarray(0, checksumBytes)) ? hashes : null;
}

export function splitHashes(hashes: Buffer): Buffer[] {
  return Array.from({ length: hashes.length / hashBytes }, (_, at) => {
    return hashes.subarray(at * hashBytes, (at + 1) * hashBytes);
  });
}

/** Reports a value that does not fit its place. */
export function tellUnfit({ owner, level, position }: HashPlace): void {
  const error = new TypeError('it does not fit its place');
  tellUnreadable({ kind: 'tile', id: `${owner} level ${level} position ${position}`, error });
}

function checksum({ owner, level, position }: HashPlace, hashes: Uint8Array): Buffer {
  const place = Buffer.alloc(10);
  place.writeUInt8(level, 1);
  place.writeBigUInt64BE(BigInt(position), 2);
  return sha256Buffer(Buffer.concat([Buffer.from(owner), place, hashes])).subarray(0, checksumBytes);
}
