import { decodeBase64, encodeBase64 } from '../keys/base64.ts';
import type { Ed25519Verifier } from '../keys/crypto-port.ts';
import { sha256 } from '../keys/hash.ts';
import { toHex } from '../keys/hex.ts';
import { digestVerifier } from '../keys/signature.ts';

/** Public keys that sign checkpoints, and their two names in c2sp.org/signed-note (docs/proofs.md, "Checkpoint"). */

const ED25519 = 0x01;
const KEY_ID_BYTES = 4;
const PUBLIC_KEY_BYTES = 32;

export interface LogKey {
  /** 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly verify: Ed25519Verifier;
}

/** `publicKey`: 32 bytes in base64. null: checkPublicKey refuses it, so nothing verifies under it. */
export function logKey(publicKey: string): LogKey | null {
  const verify = digestVerifier(publicKey);
  const bytes = decodeBase64(publicKey, PUBLIC_KEY_BYTES);
  return verify === null || bytes === null ? null : { publicKey: bytes, verify };
}

/** SHA-256(origin ‖ 0A ‖ 01 ‖ public key)[:4], in 8 hex digits. */
export function keyIdOf(origin: string, publicKey: Uint8Array): string {
  const name = new TextEncoder().encode(`${origin}\n`);
  const input = new Uint8Array(name.length + 1 + publicKey.length);
  input.set(name);
  input.set(typedKey(publicKey), name.length);
  return toHex(sha256(input).subarray(0, KEY_ID_BYTES));
}

/** The key for tools of others: `origin+key id+base64(01 ‖ public key)`. */
export function formatVkey(origin: string, publicKey: Uint8Array): string {
  return `${origin}+${keyIdOf(origin, publicKey)}+${encodeBase64(typedKey(publicKey))}`;
}

/**
 * The name and the key that a vkey holds. The name is any text without a plus sign: compare it with the origin that you
 * expect. null: another form or type of key, a key id that is not of this key, or a key that logKey refuses.
 */
export function parseVkey(text: string): { readonly origin: string; readonly key: LogKey } | null {
  const [, origin = '', keyId, encoded = ''] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  const typed = decodeBase64(encoded, 1 + PUBLIC_KEY_BYTES);
  if (typed === null || typed[0] !== ED25519) return null;
  const publicKey = typed.subarray(1);
  const key = keyIdOf(origin, publicKey) === keyId ? logKey(encodeBase64(publicKey)) : null;
  return key === null ? null : { origin, key };
}

function typedKey(publicKey: Uint8Array): Uint8Array {
  const typed = new Uint8Array(1 + publicKey.length);
  typed[0] = ED25519;
  typed.set(publicKey, 1);
  return typed;
}
