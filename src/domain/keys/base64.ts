import { platformCrypto } from './crypto.ts';

/**
 * Strict standard base64 (RFC 4648, section 4), so that a value has one spelling. null: base64url, missing padding,
 * white space, stray bits at the end (`AB==`), and any length other than `lengthBytes`.
 */
export function decodeBase64(text: string, lengthBytes: number): Uint8Array | null {
  if (text.length !== Math.ceil(lengthBytes / 3) * 4) return null;
  const bytes = platformCrypto.fromBase64(text);
  return bytes.length === lengthBytes && platformCrypto.toBase64(bytes) === text ? bytes : null;
}

/** What decodeBase64 accepts, as a regular expression without flags. */
export function base64Form(lengthBytes: number): RegExp {
  const rest = lengthBytes % 3;
  // A last group of one byte has 4 unused bits, one of two bytes 2. They are zero.
  const last = ['', '[A-Za-z0-9+/][AQgw]==', '[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]='][rest];
  return new RegExp(`^[A-Za-z0-9+/]{${((lengthBytes - rest) / 3) * 4}}${last}$`);
}

/** Standard base64 with padding (RFC 4648, section 4). */
export const encodeBase64 = platformCrypto.toBase64;
