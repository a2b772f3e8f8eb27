import type { KeyObject } from 'node:crypto';
import { decodeBase64 } from '../../domain/keys/base64.ts';
import { sha256 } from '../../domain/keys/hash.ts';
import { signDigest, verifyDigest } from '../../domain/keys/key-object.ts';
import { fingerprint } from '../../domain/keys/public-key.ts';
import { authorityKid, SIGNATURE_BYTES } from '../../domain/keys/signature.ts';
import { verifyingKey } from '../../domain/keys/verifying-key.ts';

/**
 * The list of the authority's keys, and when it is believed. The store holds the list, so anybody who can write to the
 * store can change it: the newest key signs all of it.
 */

/** One key of the service's authority. Times are ISO. */
export interface AuthorityKeyRecord {
  readonly kid: string;
  /** base64, 32 bytes. */
  readonly publicKey: string;
  readonly validFrom: string;
  /** null while the key is in use. */
  readonly validTo: string | null;
  /** By the previous key, over SHA-256 of the canonical JSON of kid, public_key and valid_from. null: the first key. */
  readonly startSig: string | null;
}

export interface AuthorityKeyList {
  /** Oldest first. */
  readonly keys: readonly AuthorityKeyRecord[];
  /** By the newest key, over `listDigest`; base64. null: a version before 0.2.0 wrote the list. */
  readonly listSig: string | null;
}

/** By the key before. */
export function signStart(key: Pick<AuthorityKeyRecord, 'kid' | 'publicKey' | 'validFrom'>, before: KeyObject): string {
  return signDigest(startDigest(key), before);
}

/** `newest`: the private key of the last one. */
export function signList(keys: readonly AuthorityKeyRecord[], newest: KeyObject): string {
  return signDigest(listDigest(keys), newest);
}

/** The members are in the order of RFC 8785. */
function startDigest({ kid, publicKey, validFrom }: Pick<AuthorityKeyRecord, 'kid' | 'publicKey' | 'validFrom'>) {
  return sha256(JSON.stringify({ kid, public_key: publicKey, valid_from: validFrom }));
}

/** SHA-256("svc-authority-keys-v1" 00 ‖ JSON of a list for each key: kid, public key, start, end, startSig). */
export function listDigest(keys: readonly AuthorityKeyRecord[]): Uint8Array {
  const rows = keys.map(({ kid, publicKey, validFrom, validTo, startSig }) =>
    JSON.stringify([kid, publicKey, validFrom, validTo, startSig]),
  );
  return sha256(`svc-authority-keys-v1\0[${rows.join()}]`);
}

/**
 * Why a stored list is not believed, as a clause. null: it is. `trusted` are public keys (base64) of the authority that
 * are known from elsewhere than the store. Each must be in the list, since an older list may lack a later key. The
 * newest key must descend from them, and must have signed all of the list.
 *
 * A version before 0.2.0 signed no list. One of a single key, which the caller trusts, is believed without a signature.
 */
export function whyRefused({ keys, listSig }: AuthorityKeyList, trusted: readonly string[]): string | null {
  const missing = trusted.find((publicKey) => !keys.some((key) => key.publicKey === publicKey));
  if (missing !== undefined)
    return `it lacks the key with the fingerprint ${authorityFingerprint({ publicKey: missing })}`;
  const newest = keys.at(-1);
  if (newest === undefined) return null;
  const wrong = wrongStart(keys);
  if (wrong !== null) return wrong;
  if (listSig === null) return keys.length === 1 && wrongForm(keys) === null ? null : `${newest.kid} has not signed it`;
  return isSigned({ keys, listSig }) ? null : `it is not as ${newest.kid} has signed it`;
}

/** Says which key does not descend from the one before, as a clause. null: all do. */
export function wrongStart(keys: readonly AuthorityKeyRecord[]): string | null {
  for (const [at, key] of keys.entries()) {
    const before = keys[at - 1];
    if (before !== undefined && !isSignedBy(before, startDigest(key), key.startSig ?? ''))
      return `the start of ${key.kid} is not signed by ${before.kid}`;
  }
  return null;
}

/**
 * Says how the list differs from each that was written by a start or a rotation, as a clause. null: in nothing. The
 * date of the first key is free: nothing else in the list says it.
 */
export function wrongForm(keys: readonly AuthorityKeyRecord[]): string | null {
  for (const [at, { kid, validTo, startSig }] of keys.entries()) {
    if (kid !== authorityKid(at + 1)) return `key ${at + 1} is named ${kid}`;
    if (at === 0 && startSig !== null) return `the start of ${kid}, the first key, is signed`;
    const next = keys[at + 1];
    if (validTo !== (next?.validFrom ?? null))
      return next === undefined ? `${kid}, the newest key, has ended` : `${kid} does not end where ${next.kid} begins`;
  }
  return null;
}

/** Whether the newest key has signed the list as it is. */
export function isSigned({ keys, listSig }: AuthorityKeyList): boolean {
  const newest = keys.at(-1);
  return newest !== undefined && listSig !== null && isSignedBy(newest, listDigest(keys), listSig);
}

/** Whether the key has made the signature (base64) of the digest. false too for a key or signature of another form. */
function isSignedBy(
  { publicKey }: Pick<AuthorityKeyRecord, 'publicKey'>,
  digest: Uint8Array,
  signature: string,
): boolean {
  const key = verifyingKey(publicKey);
  const bytes = decodeBase64(signature, SIGNATURE_BYTES);
  return key !== null && bytes !== null && verifyDigest(digest, bytes, key);
}

/** SHA-256 hex of the public key. */
export function authorityFingerprint({ publicKey }: Pick<AuthorityKeyRecord, 'publicKey'>): string {
  return fingerprint(Buffer.from(publicKey, 'base64'));
}
