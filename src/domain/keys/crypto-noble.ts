import { ed25519 } from '@noble/curves/ed25519.js';
import { hmac } from '@noble/hashes/hmac.js';
import { sha256, sha512 } from '@noble/hashes/sha2.js';
import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js';
import type { CryptoPort } from './crypto-port.ts';

/**
 * The port in JavaScript, for browsers and other places without Node's crypto module. WebCrypto is not used to verify:
 * engines judge some signatures differently, and not all have Ed25519.
 */
export const nobleCrypto: CryptoPort = {
  sha256: (data) => sha256(bytesOf(data)),
  sha256Hex: (data) => bytesToHex(sha256(bytesOf(data))),
  hmacSha256: (key) => {
    const copy = key.slice();
    return (...parts) => {
      const mac = hmac.create(sha256, copy);
      for (const part of parts) mac.update(bytesOf(part));
      return mac.digest();
    };
  },
  ed25519PublicKey: (seed) => ed25519.getPublicKey(seed),
  ed25519Signer: (seed) => {
    const copy = seed.slice();
    return (message) => ed25519.sign(message, copy);
  },
  ed25519Verifier(publicKey) {
    const { Fn, BASE } = ed25519.Point;
    const key = ed25519.Point.fromBytes(publicKey);
    // The library's own `verify` multiplies with the cofactor.
    return (message, signature) => {
      const r = signature.subarray(0, 32);
      const s = littleEndian(signature.subarray(32));
      if (s >= Fn.ORDER) return false;
      const challenge = Fn.create(littleEndian(sha512(concatBytes(r, publicKey, message))));
      const expected = BASE.multiplyUnsafe(s).subtract(key.multiplyUnsafe(challenge)).toBytes();
      return expected.every((byte, at) => byte === r[at]);
    };
  },
  fromHex: hexToBytes,
  toBase64(bytes) {
    let text = '';
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text);
  },
  fromBase64(text) {
    try {
      return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    } catch {
      return new Uint8Array(0);
    }
  },
};

const encoder = new TextEncoder();

function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? encoder.encode(data) : data;
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${bytesToHex(bytes.slice().reverse())}`);
}
