import { type KeyObject, verify } from 'node:crypto';

/** Verifies Ed25519 signatures of 32-byte digests, off the main thread (libuv's thread pool): about 100 µs of a core each. */
export function verifySignature(digest: Buffer, signature: Uint8Array, key: KeyObject): Promise<boolean> {
  return new Promise((resolve, reject) => {
    verify(null, digest, key, signature, (error, valid) => (error === null ? resolve(valid) : reject(error)));
  });
}
