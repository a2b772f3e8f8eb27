/**
 * The cryptography that events and the client need. It is synchronous, so that the same rules run in Node and in
 * browsers, whose WebCrypto is asynchronous. crypto.ts chooses the implementation.
 */
export interface CryptoPort {
  /** SHA-256 (FIPS 180-4) of bytes, or of the UTF-8 of a text: 32 bytes. */
  sha256(data: string | Uint8Array): Uint8Array;
  /** The same in lower-case hex. */
  sha256Hex(data: string | Uint8Array): string;
  /** HMAC-SHA-256 (RFC 2104) with this key. */
  hmacSha256(key: Uint8Array): Hmac;
  /** The public key (32 bytes) of a seed (32 bytes). RFC 8032, section 5.1.5. */
  ed25519PublicKey(seed: Uint8Array): Uint8Array;
  /** Signs with the private key of a seed (32 bytes). RFC 8032, section 5.1.6. */
  ed25519Signer(seed: Uint8Array): (message: Uint8Array) => Uint8Array;
  /**
   * Verifies under a public key that checkPublicKey accepts: RFC 8032, section 5.1.7, without the cofactor, with S
   * below the group order and R compared byte by byte. Callers refuse an R that is the identity point first.
   */
  ed25519Verifier(publicKey: Uint8Array): Ed25519Verifier;
  /** The bytes of a text of hex digits. Throws or cuts the bytes short for any other text. */
  fromHex(hex: string): Uint8Array;
  /** Standard base64 with padding. */
  toBase64(bytes: Uint8Array): string;
  /** Lenient, as Buffer is. decodeBase64 is strict. */
  fromBase64(text: string): Uint8Array;
}

/** The MAC (32 bytes) of parts as if they were joined. Texts count as UTF-8. */
export type Hmac = (...parts: readonly (string | Uint8Array)[]) => Uint8Array;

/** `signature` has 64 bytes. */
export type Ed25519Verifier = (message: Uint8Array, signature: Uint8Array) => boolean;
