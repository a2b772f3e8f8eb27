import { createPublicKey, type KeyObject } from 'node:crypto';
import sodium from 'libsodium-wrappers';
import { LedgerError } from '../errors.ts';
import { base64Form, decodeBase64 } from './base64.ts';
import { sha256Hex } from './hash.ts';

/**
 * Every Ed25519 key is checked before it verifies anything, wherever it comes from. Under a key of small order any
 * signature may verify. Under a key of mixed order verifiers disagree.
 */

await sodium.ready;

const PUBLIC_KEY_BYTES = 32;
export const publicKeyForm = base64Form(PUBLIC_KEY_BYTES);

/** The bytes before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410, section 4). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

/** Throws `invalid_public_key` unless it is a point of prime order in one spelling (docs/verifying.md, section 7). */
export function checkPublicKey(base64: string): Uint8Array {
  const key = decodeBase64(base64, PUBLIC_KEY_BYTES);
  if (key === null) throw invalidPublicKey(`${PUBLIC_KEY_BYTES} bytes in standard base64 with padding`);
  if (!isCanonicalPoint(key)) throw invalidPublicKey('the canonical encoding of a point');
  if (!hasPrimeOrder(key)) throw invalidPublicKey('a point of prime order on the curve');
  return key;
}

/** null: checkPublicKey refuses the key (base64), so nothing verifies under it. */
export function verifyingKey(base64: string): KeyObject | null {
  try {
    return keyObject(checkPublicKey(base64));
  } catch (error) {
    if (error instanceof LedgerError) return null;
    throw error;
  }
}

/** The bytes must have passed checkPublicKey: see verifyingKey. */
export function keyObject(publicKey: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([SPKI_PREFIX, publicKey]), format: 'der', type: 'spki' });
}

export function fingerprint(publicKey: Uint8Array): string {
  return sha256Hex(publicKey);
}

/**
 * Whether y is below p = 2^255 - 19 (RFC 8032, section 5.1.3). No encoding with a larger y is of prime order, so this
 * check only names the fault. The other non-canonical encoding (x = 0 with the sign bit set) exists only for points of
 * small order.
 */
function isCanonicalPoint(key: Uint8Array): boolean {
  const last = PUBLIC_KEY_BYTES - 1;
  if (((key[last] ?? 0) & 0x7f) !== 0x7f) return true;
  for (let at = last - 1; at > 0; at -= 1) {
    if (key[at] !== 0xff) return true;
  }
  return (key[0] ?? 0) < 0xed;
}

/** This conversion refuses bytes that are no point of the main subgroup, and small orders. */
function hasPrimeOrder(key: Uint8Array): boolean {
  try {
    sodium.crypto_sign_ed25519_pk_to_curve25519(key);
    return true;
  } catch {
    return false;
  }
}

function invalidPublicKey(expected: string): LedgerError {
  return new LedgerError('invalid_public_key', `The Ed25519 public key must be ${expected}.`, {
    field: 'public_key',
    expected,
  });
}
