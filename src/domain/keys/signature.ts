import { LedgerError } from '../errors.ts';
import { base64Form, decodeBase64 } from './base64.ts';
import { platformCrypto } from './crypto.ts';
import type { CryptoPort, Ed25519Verifier } from './crypto-port.ts';
import { sha256 } from './hash.ts';
import { hasIdentityR } from './identity-r.ts';
import { checkPublicKey } from './public-key.ts';

/** Ed25519 signatures of digests (docs/verifying.md, sections 1 and 7), and the names of the keys that made them. */

export const SIGNATURE_BYTES = 64;
export const signatureForm = base64Form(SIGNATURE_BYTES);

/** From 1. No actor can have more keys than nine digits can number. */
const KEY_NUMBER = '[1-9][0-9]{0,8}';
const ACTOR_URI = 'svc:actor:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})';
export const actorKidForm = new RegExp(`^${ACTOR_URI}#key-(${KEY_NUMBER})$`);
export const authorityKidForm = new RegExp(`^svc:authority#key-(${KEY_NUMBER})$`);
const SHORT_KID = new RegExp(`^key-(${KEY_NUMBER})$`);
/** A kid in a path: the short form too. */
export const pathKidForm = new RegExp(`^(?:${ACTOR_URI}#)?key-${KEY_NUMBER}$`);

/** Throws `invalid_signature` for anything but 64 bytes in strict base64. */
export function checkSignatureForm(base64: string): Uint8Array {
  const signature = decodeBase64(base64, SIGNATURE_BYTES);
  if (signature !== null) return signature;
  const expected = `${SIGNATURE_BYTES} bytes in standard base64 with padding`;
  throw new LedgerError('invalid_signature', `X-Actor-Sig must be ${expected}.`, { header: 'X-Actor-Sig', expected });
}

/**
 * The digest that an actor signs (docs/verifying.md, section 1): SHA-256 of event type, 0x00, ledger id, 0x00, and the
 * canonical signed payload. TypeError for a NUL or half a surrogate pair in type or id: two inputs could have the same
 * bytes.
 */
export function sigDigest(eventType: string, ledgerId: string, canonicalPayload: string): Uint8Array {
  if (eventType.includes('\0') || ledgerId.includes('\0')) throw new TypeError('NUL in an event type or ledger id');
  if (!eventType.isWellFormed() || !ledgerId.isWellFormed())
    throw new TypeError('Half a surrogate pair in an event type or ledger id');
  return sha256(`${eventType}\0${ledgerId}\0${canonicalPayload}`);
}

/**
 * The check of signatures (64 bytes) of digests under a public key (base64), without KeyObjects. null: checkPublicKey
 * refuses the key, so nothing verifies under it.
 */
export function digestVerifier(publicKey: string, crypto: CryptoPort = platformCrypto): Ed25519Verifier | null {
  let verify: Ed25519Verifier;
  try {
    verify = crypto.ed25519Verifier(checkPublicKey(publicKey));
  } catch (error) {
    if (error instanceof LedgerError) return null;
    throw error;
  }
  return (digest, signature) => !hasIdentityR(signature) && verify(digest, signature);
}

interface ActorKid {
  readonly actorId: string;
  /** From 1. */
  readonly number: number;
}

/** Parses `svc:actor:<uuid>#key-<n>`. null: any other spelling, and the authority's keys. */
export function parseKid(text: string): ActorKid | null {
  const [, actorId, digits] = actorKidForm.exec(text) ?? [];
  return actorId === undefined ? null : { actorId, number: Number(digits) };
}

/** Parses `svc:authority#key-<n>`. null: anything else. */
export function parseAuthorityKid(text: string): number | null {
  const [, digits] = authorityKidForm.exec(text) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** `number` counts from 1. */
export function actorKid(actorId: string, number: number): string {
  return `svc:actor:${actorId}#key-${number}`;
}

/** `number` counts from 1. */
export function authorityKid(number: number): string {
  return `svc:authority#key-${number}`;
}

/** `text`: a path segment, decoded: `key-2` or the full name. null: another spelling, or another actor's key. */
export function kidFromPath(actorId: string, text: string): string | null {
  const [, digits] = SHORT_KID.exec(text) ?? [];
  if (digits !== undefined) return actorKid(actorId, Number(digits));
  return parseKid(text)?.actorId === actorId ? text : null;
}
