import { createPublicKey, type KeyObject } from 'node:crypto';
import { hasIdentityR, verifyDigest } from '../../domain/signature.ts';

/** Whether `signature` is that of `digest` under `key`, the 32 bytes of an Ed25519 public key. */
type QuickCheck = (signature: Buffer, digest: Buffer, key: Buffer) => boolean;

/** A public key in the two forms that checking needs. */
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

/** Answers whether a signature of a 32-byte digest is that of a key. */
export type SignatureCheck = (digest: Uint8Array, signature: Uint8Array, key: CheckingKey) => boolean;

/**
 * Checks with libsodium, which takes half the time of OpenSSL, where its binary runs on this platform, else with
 * OpenSSL. For keys of prime order, and such keys alone come here, both decide the same equation without cofactor and
 * compare the same bytes. They differ in one case, an R that is the identity point: libsodium refuses it, and OpenSSL
 * in some versions only. A rule of our own refuses it before either is asked, so that the answer is the same on every
 * platform.
 */
export async function signatureCheck(): Promise<SignatureCheck> {
  const quick = await quickCheck();
  return (digest, signature, key) => {
    if (quick === null) return verifyDigest(digest, signature, key.object);
    return !hasIdentityR(signature) && quick(bufferOf(signature), bufferOf(digest), key.bytes);
  };
}

async function quickCheck(): Promise<QuickCheck | null> {
  try {
    return (await import('sodium-native')).default.crypto_sign_verify_detached;
  } catch {
    return null;
  }
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
