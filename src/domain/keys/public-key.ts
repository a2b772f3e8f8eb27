import { ed25519 } from '@noble/curves/ed25519.js';
import { absent, isAbsent, LedgerError } from '../errors.ts';
import { base64Form, decodeBase64 } from './base64.ts';
import { sha256Hex } from './hash.ts';

/**
 * Every Ed25519 key is checked before it verifies anything, wherever it comes from. Under a key of small order any
 * signature may verify. Under a key of mixed order verifiers disagree.
 */

const PUBLIC_KEY_BYTES = 32;
export const publicKeyForm = base64Form(PUBLIC_KEY_BYTES);

/** Throws `invalid_public_key` unless it is a point of prime order in one spelling (docs/verifying.md, section 7). */
export function checkPublicKey(base64: string, isPrimeOrder = hasPrimeOrder): Uint8Array {
  const key = decodeBase64(base64, PUBLIC_KEY_BYTES);
  if (key === null)
    throw invalidPublicKey(`${PUBLIC_KEY_BYTES} bytes in standard base64 with padding`, isAbsent(base64));
  if (!isCanonicalPoint(key)) throw invalidPublicKey('the canonical encoding of a point');
  if (!isPrimeOrder(key)) throw invalidPublicKey('a point of prime order on the curve');
  return key;
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

/** Takes 1.7 ms. */
function hasPrimeOrder(key: Uint8Array): boolean {
  try {
    const point = ed25519.Point.fromBytes(key);
    return !point.is0() && point.isTorsionFree();
  } catch {
    return false;
  }
}

function invalidPublicKey(expected: string, isMissing = false): LedgerError {
  const field = 'public_key';
  const message = isMissing ? absent(field, expected) : `The Ed25519 public key must be ${expected}.`;
  return new LedgerError('invalid_public_key', message, { field, expected });
}
