import { hash } from 'node:crypto';

/** SHA-256 (FIPS 180-4) of bytes, or of the UTF-8 of a text: 32 bytes. */
export function sha256(data: string | Uint8Array): Buffer {
  // Decoding hex is faster than asking Node for a buffer, which it allocates outside of its heap.
  return Buffer.from(hash('sha256', data, 'hex'), 'hex');
}

export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** The form of command ids, event hashes and digests. */
export const sha256HexForm = /^[0-9a-f]{64}$/;
