import { decodeBase64 } from '../keys/base64.ts';
import { sha256 } from '../keys/hash.ts';
import { digestVerifier, SIGNATURE_BYTES } from '../keys/signature.ts';
import { isServiceName } from './origin.ts';

/** By an endorsement the authority says which log key the service uses (docs/proofs.md, "Endorsement"). */

export const PUBLIC_KEY_BYTES = 32;

interface Endorsement {
  /** The value of LOG_ORIGIN. */
  readonly serviceName: string;
  /** The public key of the log key, 32 bytes. */
  readonly publicKey: Uint8Array;
}

/** What the authority signs: SHA-256("svc-log-key-v1" 00 ‖ name ‖ 00 ‖ public key). RangeError for another form. */
export function endorsementDigest({ serviceName, publicKey }: Endorsement): Uint8Array {
  if (!isServiceName(serviceName)) throw new RangeError(`No name of a service: ${serviceName}`);
  if (publicKey.length !== PUBLIC_KEY_BYTES)
    throw new RangeError(`A public key has ${PUBLIC_KEY_BYTES} bytes, not ${publicKey.length}`);
  const head = new TextEncoder().encode(`svc-log-key-v1\0${serviceName}\0`);
  const message = new Uint8Array(head.length + publicKey.length);
  message.set(head);
  message.set(publicKey, head.length);
  return sha256(message);
}

/**
 * Whether the authority's key (base64) endorses the log key by this signature (base64). false too for a key or a
 * signature of another form.
 */
export function isEndorsed(endorsement: Endorsement, signature: string, authorityKey: string): boolean {
  return endorsementCheck(authorityKey)(endorsement, signature);
}

/** `isEndorsed` of one key of the authority for many endorsements: the key is checked once, which costs most. */
export function endorsementCheck(authorityKey: string): (endorsement: Endorsement, signature: string) => boolean {
  const verify = digestVerifier(authorityKey);
  return (endorsement, signature) => {
    const bytes = decodeBase64(signature, SIGNATURE_BYTES);
    return verify !== null && bytes !== null && verify(endorsementDigest(endorsement), bytes);
  };
}
