import { platformCrypto } from './crypto.ts';

/** SHA-256 (FIPS 180-4) of bytes, or of the UTF-8 of a text: 32 bytes. */
export const sha256 = platformCrypto.sha256;

/** The same in lower-case hex. */
export const sha256Hex = platformCrypto.sha256Hex;

/** The form of command ids, event hashes and digests. */
export const sha256HexForm = /^[0-9a-f]{64}$/;
