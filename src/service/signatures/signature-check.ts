import { createPublicKey, type KeyObject } from 'node:crypto';
import { verifyDigest } from '../../domain/signature.ts';

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
 * Checks with libsodium, which takes half the time of OpenSSL, where its binary runs on this platform. What libsodium accepts OpenSSL
 * accepts too: both decide the same equation without a cofactor and compare the same bytes, and libsodium refuses some encodings more.
 * So a yes is final and a no is asked of OpenSSL: the answer is always that of verifyDigest, on every platform.
 */
export async function signatureCheck(): Promise<SignatureCheck> {
  const quick = await quickCheck();
  return (digest, signature, key) =>
    quick?.(bufferOf(signature), bufferOf(digest), key.bytes) === true || verifyDigest(digest, signature, key.object);
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
