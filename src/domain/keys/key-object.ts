import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { hasIdentityR } from './identity-r.ts';

/** Ed25519 keys as Node's KeyObjects, which the service shares between threads. The client does without. */

/** The bytes before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410, section 4). */
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');
/** The bytes before the seed in the PKCS#8 form of an Ed25519 private key (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The bytes must have passed checkPublicKey: see verifyingKey. */
export function keyObject(publicKey: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.concat([SPKI_PREFIX, publicKey]), format: 'der', type: 'spki' });
}

/**
 * An Ed25519 private key: PEM text (PKCS#8), or the 32 bytes of the seed. Throws TypeError for another key in PEM form,
 * and the error of node:crypto for text that is none.
 */
export function ed25519Key(key: string | Uint8Array): KeyObject {
  if (typeof key !== 'string')
    return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, key]), format: 'der', type: 'pkcs8' });
  const read = createPrivateKey(key);
  if (read.asymmetricKeyType !== 'ed25519') throw new TypeError('the key must be an Ed25519 private key (PKCS#8 PEM)');
  return read;
}

/**
 * RFC 8032, section 5.1.7, without the cofactor, and without an R that is the identity point. Takes about 70 µs. `key`
 * must come from verifyingKey.
 */
export function verifyDigest(digest: Uint8Array, signature: Uint8Array, key: KeyObject): boolean {
  return !hasIdentityR(signature) && verify(null, digest, key, signature);
}

/** The signature of the 32-byte digest, in base64. */
export function signDigest(digest: Uint8Array, privateKey: KeyObject): string {
  return sign(null, digest, privateKey).toString('base64');
}
