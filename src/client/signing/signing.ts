import { createPrivateKey, createPublicKey, KeyObject } from 'node:crypto';
import { entityRequestForm } from '../../domain/keys/entity-request.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { sigDigest, signDigest } from '../../domain/keys/signature.ts';
import type { Headers, Wire } from '../transport.ts';

/** Signs for an actor, for example with a private key in this process, a hardware module or a remote signer. */
export interface Signer {
  /** `svc:actor:<uuid>#key-<n>`. If left out, the service tries the actor's preferred key. */
  readonly keyId?: string;
  /** The Ed25519 signature (RFC 8032) of a 32-byte digest: 64 bytes in standard base64. */
  sign(digest: Uint8Array): Promise<string> | string;
}

/** The bytes before the seed in the PKCS#8 form of an Ed25519 private key (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;

/**
 * Makes a signer from an Ed25519 private key: PEM text (PKCS#8), a KeyObject, or the 32 bytes of the seed. Throws
 * TypeError for any other key, and the error of node:crypto for text that is no key in PEM form.
 */
export function signerFromPrivateKey(key: string | KeyObject | Uint8Array, keyId?: string): Signer {
  const privateKey = ed25519Key(key);
  return { keyId, sign: (digest) => signDigest(digest, privateKey) };
}

/** Forms and errors are those of signerFromPrivateKey. */
export function ed25519Key(key: string | KeyObject | Uint8Array): KeyObject {
  let read: KeyObject;
  if (key instanceof KeyObject) read = key;
  else if (typeof key === 'string') read = createPrivateKey(key);
  else {
    if (key.length !== SEED_BYTES) throw new TypeError(`A seed has ${SEED_BYTES} bytes`);
    read = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, key]), format: 'der', type: 'pkcs8' });
  }
  if (read.type !== 'private' || read.asymmetricKeyType !== 'ed25519')
    throw new TypeError('An Ed25519 private key is needed');
  return read;
}

/** The public key to enrol: 32 bytes in standard base64. Throws TypeError unless the key is an Ed25519 private key. */
export function publicKeyBase64(privateKey: KeyObject): string {
  const { x = '' } = createPublicKey(ed25519Key(privateKey)).export({ format: 'jwk' });
  return Buffer.from(x, 'base64url').toString('base64');
}

/** What an actor signs for a call (docs/verifying.md, section 1). */
export interface SigningInput {
  readonly eventType: string;
  /** For ENTITY_REQUEST: the entity's actor id. */
  readonly ledgerId: string;
  /** Canonical JSON (RFC 8785). */
  readonly canonical: string;
}

/** The digest that is signed: SHA-256, 32 bytes. */
export function digestOf(input: SigningInput): Uint8Array {
  return sigDigest(input.eventType, input.ledgerId, input.canonical);
}

export async function signatureHeaders(signer: Signer, input: SigningInput): Promise<Headers> {
  const signature = await signer.sign(digestOf(input));
  return { 'x-actor-sig': signature, ...(signer.keyId === undefined ? {} : { 'x-signing-key-id': signer.keyId }) };
}

/** What ENTITY_REQUEST signs. `timestamp` is the ISO time that is sent as X-Timestamp. */
export function entityRequestInput(
  entityActorId: string,
  { httpMethod, path, body }: Pick<Wire, 'httpMethod' | 'path' | 'body'>,
  timestamp: string,
): SigningInput {
  const canonical = entityRequestForm({ method: httpMethod, path, bodyHash: sha256Hex(body), timestamp });
  return { eventType: 'ENTITY_REQUEST', ledgerId: entityActorId, canonical };
}
