import { platformCrypto } from '../../domain/keys/crypto.ts';
import { entityRequestForm } from '../../domain/keys/entity-request.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { toHex } from '../../domain/keys/hex.ts';
import { sigDigest } from '../../domain/keys/signature.ts';
import type { Headers, Wire } from '../transport.ts';

/** Signs for an actor, for example with a private key in this process, a hardware module or a remote signer. */
export interface Signer {
  /** `svc:actor:<uuid>#key-<n>`. If left out, the service tries the actor's preferred key. */
  readonly keyId?: string;
  /** The Ed25519 signature (RFC 8032) of a 32-byte digest: 64 bytes in standard base64. */
  sign(digest: Uint8Array): Promise<string> | string;
}

/** A KeyObject of node:crypto, as far as it is used here. */
interface ExportableKey {
  readonly type: string;
  export(options: { readonly format: 'jwk' }): object;
}

/** An Ed25519 private key: PEM text (PKCS#8, not encrypted), a KeyObject of Node, or the 32 bytes of the seed. */
export type PrivateKey = string | ExportableKey | Uint8Array;

/** Makes a signer from an Ed25519 private key. Throws TypeError for any other key. */
export function signerFromPrivateKey(key: PrivateKey, keyId?: string): Signer {
  const sign = platformCrypto.ed25519Signer(seedOf(key));
  return { keyId, sign: (digest) => platformCrypto.toBase64(sign(digest)) };
}

/** The public key to enrol: 32 bytes in standard base64. Throws TypeError unless the key is an Ed25519 private key. */
export function publicKeyBase64(privateKey: PrivateKey): string {
  return platformCrypto.toBase64(platformCrypto.ed25519PublicKey(seedOf(privateKey)));
}

const SEED_BYTES = 32;
/** The DER of a PKCS#8 key up to its seed (RFC 8410, section 7); in version 2 the public key follows the seed. */
const PKCS8_FORM = /^(?:302e020100|30..020101)300506032b657004220420/;
const PKCS8_PREFIX_BYTES = 16;

function seedOf(key: PrivateKey): Uint8Array {
  if (key instanceof Uint8Array) {
    if (key.length !== SEED_BYTES) throw new TypeError(`A seed has ${SEED_BYTES} bytes`);
    return key;
  }
  const seed = typeof key === 'string' ? seedOfPem(key) : seedOfKeyObject(key);
  if (seed?.length !== SEED_BYTES) throw new TypeError('An Ed25519 private key is needed');
  return seed;
}

function seedOfPem(pem: string): Uint8Array | null {
  const [, base64 = ''] = /-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\s]*)-----END PRIVATE KEY-----/.exec(pem) ?? [];
  const der = platformCrypto.fromBase64(base64.replace(/\s/g, ''));
  const seedEnd = PKCS8_PREFIX_BYTES + SEED_BYTES;
  return PKCS8_FORM.test(toHex(der)) ? der.slice(PKCS8_PREFIX_BYTES, seedEnd) : null;
}

function seedOfKeyObject(key: ExportableKey): Uint8Array | null {
  if (key.type !== 'private') return null;
  const { crv, d }: { readonly crv?: unknown; readonly d?: unknown } = key.export({ format: 'jwk' });
  if (crv !== 'Ed25519' || typeof d !== 'string') return null;
  return platformCrypto.fromBase64(`${d.replaceAll('-', '+').replaceAll('_', '/')}=`);
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
