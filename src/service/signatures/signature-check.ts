import { createPublicKey, type KeyObject } from 'node:crypto';
import { hasIdentityR } from '../../domain/keys/identity-r.ts';
import { verifyDigest } from '../../domain/keys/key-object.ts';

/** A public key in the forms of libsodium and of OpenSSL. */
export interface CheckingKey {
  readonly bytes: Buffer;
  readonly object: KeyObject;
}

/** `x` is the key's 32 bytes in base64url. */
export function checkingKey(x: string): CheckingKey {
  return {
    bytes: Buffer.from(x, 'base64url'),
    object: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
  };
}

type Sodium = Pick<typeof import('sodium-native'), 'crypto_sign_verify_detached'>;
type LoadSodium = () => Promise<{ readonly default: Sodium }>;

/** Whether a signature of a 32-byte digest is valid under a key. */
type SignatureCheck = (digest: Uint8Array, signature: Uint8Array, key: CheckingKey) => boolean;

/**
 * Verifies with libsodium if its binary runs on this platform, else with OpenSSL, which takes twice the time. Only keys
 * of prime order come here. For these both use the same equation without cofactor and compare the same bytes. They
 * differ in one case, an R that is the identity point: libsodium refuses it, OpenSSL only in some versions. Our own
 * check refuses it first, so that all platforms give the same result.
 */
export async function signatureCheck(load: LoadSodium = () => import('sodium-native')): Promise<SignatureCheck> {
  const sodium = await load().catch(() => null);
  if (sodium === null) return (digest, signature, key) => verifyDigest(digest, signature, key.object);
  const verify = sodium.default.crypto_sign_verify_detached;
  return (digest, signature, key) =>
    !hasIdentityR(signature) && verify(bufferOf(signature), bufferOf(digest), key.bytes);
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
