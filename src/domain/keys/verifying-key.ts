import type { KeyObject } from 'node:crypto';
import { LedgerError } from '../errors.ts';
import { keyObject } from './key-object.ts';
import { checkPublicKey } from './public-key.ts';

/** A node meets thousands of keys, and this check takes 50 µs in libsodium. Without its binary it takes 1.7 ms. */
const sodium = await import('sodium-native').then(
  (loaded) => loaded.default,
  () => null,
);
const scratch = Buffer.alloc(32);

/** null: checkPublicKey refuses the key (base64), so nothing verifies under it. */
export function verifyingKey(base64: string): KeyObject | null {
  try {
    return keyObject(sodium === null ? checkPublicKey(base64) : checkPublicKey(base64, hasPrimeOrder));
  } catch (error) {
    if (error instanceof LedgerError) return null;
    throw error;
  }
}

/** This conversion refuses bytes that are no point of the main subgroup, and small orders. */
function hasPrimeOrder(key: Uint8Array): boolean {
  try {
    sodium?.crypto_sign_ed25519_pk_to_curve25519(scratch, Buffer.from(key));
    return true;
  } catch {
    return false;
  }
}
