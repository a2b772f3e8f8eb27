import { type KeyObject, sign, verify } from 'node:crypto';
import { decodeBase64 } from './base64.ts';
import { LedgerError } from './errors.ts';

/** Ed25519 signatures of digests (spec, Authentication 5) and the names of the keys that made them. */

const SIGNATURE_BYTES = 64;
const R_BYTES = 32;

/** Key numbers count from 1; nine digits are more keys than an actor can have. */
const KEY_NUMBER = '[1-9][0-9]{0,8}';
const ACTOR_KID = new RegExp(`^svc:actor:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})#key-(${KEY_NUMBER})$`);
const AUTHORITY_KID = new RegExp(`^svc:authority#key-(${KEY_NUMBER})$`);
const SHORT_KID = new RegExp(`^key-(${KEY_NUMBER})$`);

/** The 64 bytes of a signature in strict base64; anything else is `invalid_signature` (decisions.md, section 3). */
export function checkSignatureForm(base64: string): Uint8Array {
  const signature = decodeBase64(base64, SIGNATURE_BYTES);
  if (signature !== null) return signature;
  const expected = `${SIGNATURE_BYTES} bytes in standard base64 with padding`;
  throw new LedgerError('invalid_signature', `The signature must be ${expected}.`, { expected });
}

/**
 * Whether R, the first half of a signature, is the identity point. Such a signature is invalid by a rule of this
 * service, and every check asks for it first: libraries differ (docs/verifying.md, "Ed25519"), and whoever makes one
 * gives the private key away. Under a key that verifyingKey lets pass, no other R of small order fulfils the equation.
 */
export function hasIdentityR(signature: Uint8Array): boolean {
  if (signature[0] !== 1) return false;
  for (let at = 1; at < R_BYTES; at += 1) if (signature[at] !== 0) return false;
  return true;
}

/**
 * Whether the signature of the 32-byte digest is that of the key: R is not the identity point, and RFC 8032, section
 * 5.1.7, without cofactor. Takes about 70 µs of the thread. `key` must be one of verifyingKey.
 */
export function verifyDigest(digest: Uint8Array, signature: Uint8Array, key: KeyObject): boolean {
  return !hasIdentityR(signature) && verify(null, digest, key, signature);
}

/** The signature of the 32-byte digest, in base64. */
export function signDigest(digest: Uint8Array, privateKey: KeyObject): string {
  return sign(null, digest, privateKey).toString('base64');
}

/** The key of an actor: the how manieth of whom. */
export interface ActorKid {
  readonly actorId: string;
  /** From 1. */
  readonly number: number;
}

/** Reads `svc:actor:<uuid>#key-<n>`; null for any other spelling, and for the authority's keys. */
export function parseKid(text: string): ActorKid | null {
  const [, actorId, digits] = ACTOR_KID.exec(text) ?? [];
  return actorId === undefined ? null : { actorId, number: Number(digits) };
}

/** Reads `svc:authority#key-<n>`: the number, null for anything else. */
export function parseAuthorityKid(text: string): number | null {
  const [, digits] = AUTHORITY_KID.exec(text) ?? [];
  return digits === undefined ? null : Number(digits);
}

/** The name of an actor's key; `number` counts from 1. */
export function actorKid(actorId: string, number: number): string {
  return `svc:actor:${actorId}#key-${number}`;
}

/** The name of an authority key; `number` counts from 1. */
export function authorityKid(number: number): string {
  return `svc:authority#key-${number}`;
}

/**
 * The kid that a path under `/actors/{actor_id}/keys/` means, percent-decoded: `key-2` or the full name (decisions.md,
 * section 1). null for any other spelling and for another actor's key.
 */
export function kidFromPath(actorId: string, text: string): string | null {
  const [, digits] = SHORT_KID.exec(text) ?? [];
  if (digits !== undefined) return actorKid(actorId, Number(digits));
  return parseKid(text)?.actorId === actorId ? text : null;
}
