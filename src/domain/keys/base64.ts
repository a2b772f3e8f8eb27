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
