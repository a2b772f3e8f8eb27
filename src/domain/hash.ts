import { hash } from 'node:crypto';

/** SHA-256 (FIPS 180-4) of bytes, or of the UTF-8 of a text: 32 bytes. */
export function sha256(data: string | Uint8Array): Buffer {
  // Asked for a buffer, Node makes it outside of its heap, which takes longer than to read it out of digits.
  return Buffer.from(hash('sha256', data, 'hex'), 'hex');
}

/** The same in lower-case hex, 64 digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** Such hex: what ids of commands, hashes of events and digests are written as. */
export const sha256HexForm = /^[0-9a-f]{64}$/;
