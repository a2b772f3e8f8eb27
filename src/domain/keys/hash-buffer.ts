import { hash } from 'node:crypto';

/** SHA-256 of bytes, or of the UTF-8 of a text, as a Buffer: for the service, which runs in Node alone. */
export function sha256Buffer(data: string | Uint8Array): Buffer {
  // Decoding hex is faster than asking Node for a buffer, which it allocates outside of its heap.
  return Buffer.from(hash('sha256', data, 'hex'), 'hex');
}
