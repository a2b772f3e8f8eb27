import { createPrivateKey, createPublicKey, KeyObject } from 'node:crypto';
import { canonicalJson } from '../domain/canonical.ts';
import { sigDigest } from '../domain/digest.ts';
import { sha256Hex } from '../domain/hash.ts';
import { signDigest } from '../domain/signature.ts';
import type { Headers, Wire } from './transport.ts';

/** Signs for an actor: a private key in this process, a hardware module, a remote signer. */
export interface Signer {
  /** `svc:actor:<uuid>#key-<n>`; without it the service tries the actor's preferred key. */
  readonly keyId?: string;
  /** Ed25519 signature of a 32-byte digest (RFC 8032), 64 bytes in standard base64. */
  sign(digest: Uint8Array): Promise<string> | string;
}

/** The PKCS#8 form of an Ed25519 private key before its seed (RFC 8410, section 7). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;

/** A signer with a private key: PEM text (PKCS#8), a KeyObject, or the 32 bytes of the seed. TypeError for any other key. */
export function signerFromPrivateKey(key: string | KeyObject | Uint8Array, keyId?: string): Signer {
  const privateKey = ed25519Key(key);
  return { ...(keyId === undefined ? {} : { keyId }), sign: (digest) => signDigest(digest, privateKey) };
}

/** Reads an Ed25519 private key, in the same forms. */
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

/** The public key of a private one: 32 bytes in standard base64, as it is enrolled. */
export function publicKeyBase64(privateKey: KeyObject): string {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  if (x === undefined) throw new TypeError('An Ed25519 private key is needed');
  return Buffer.from(x, 'base64url').toString('base64');
}

/** What an actor signs for a call (spec, Authentication 5 and 6). */
export interface SigningInput {
  readonly eventType: string;
  /** For ENTITY_REQUEST the entity's actor id. */
  readonly ledgerId: string;
  /** Canonical JSON (RFC 8785). */
  readonly canonical: string;
}

/** The 32 bytes that are signed. */
export function digestOf(input: SigningInput): Uint8Array {
  return sigDigest(input.eventType, input.ledgerId, input.canonical);
}

/** The two signing headers of a call. */
export async function signatureHeaders(signer: Signer, input: SigningInput): Promise<Headers> {
  const signature = await signer.sign(digestOf(input));
  return { 'x-actor-sig': signature, ...(signer.keyId === undefined ? {} : { 'x-signing-key-id': signer.keyId }) };
}

/** ENTITY_REQUEST: the whole request as it is sent (decisions.md, section 4). `timestamp` is an ISO time. */
export function entityRequestInput(
  entityActorId: string,
  request: Pick<Wire, 'httpMethod' | 'path' | 'body'>,
  timestamp: string,
): SigningInput {
  const canonical = canonicalJson({
    method: request.httpMethod,
    path: request.path,
    body_hash: sha256Hex(request.body),
    timestamp,
  });
  return { eventType: 'ENTITY_REQUEST', ledgerId: entityActorId, canonical };
}
