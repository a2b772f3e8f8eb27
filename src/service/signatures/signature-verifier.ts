import { type KeyObject, verify } from 'node:crypto';
import { hasIdentityR } from '../../domain/keys/identity-r.ts';

/**
 * Verifies an Ed25519 signature (64 bytes) of a 32-byte digest off the main thread. Resolves with false if it is not
 * valid. Rejects if it could not be checked; with `overloaded` if too many are waiting.
 */
export type VerifySignature = (digest: Uint8Array, signature: Uint8Array, key: KeyObject) => Promise<boolean>;

/** In libuv's thread pool, which LMDB's writer needs too: for the few signatures that do not belong to calls. */
export const verifySignature: VerifySignature = (digest, signature, key) =>
  new Promise((resolve, reject) => {
    if (hasIdentityR(signature)) return resolve(false);
    verify(null, digest, key, signature, (error, valid) => (error === null ? resolve(valid) : reject(error)));
  });
