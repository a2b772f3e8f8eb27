import type { CryptoPort } from './crypto-port.ts';

/** The bytes before the seed in the PKCS#8 form of an Ed25519 private key (RFC 8410, section 7). */
const PKCS8_PREFIX = '302e020100300506032b657004220420';
/** The bytes before the 32 bytes of an Ed25519 key in a SubjectPublicKeyInfo (RFC 8410, section 4). */
const SPKI_PREFIX = '302a300506032b6570032100';

/** The port on Node's crypto module. The module is an argument, because browsers load this file too. */
export function nodeCrypto(node: typeof import('node:crypto')): CryptoPort {
  const prefixed = (prefix: string, bytes: Uint8Array) => Buffer.concat([Buffer.from(prefix, 'hex'), bytes]);
  const privateKey = (seed: Uint8Array) =>
    node.createPrivateKey({ key: prefixed(PKCS8_PREFIX, seed), format: 'der', type: 'pkcs8' });
  return {
    // Decoding hex is faster than asking Node for a buffer, which it allocates outside of its heap.
    sha256: (data) => Buffer.from(node.hash('sha256', data, 'hex'), 'hex'),
    sha256Hex: (data) => node.hash('sha256', data, 'hex'),
    hmacSha256(key) {
      const object = node.createSecretKey(key);
      return (...parts) => {
        const hmac = node.createHmac('sha256', object);
        for (const part of parts) hmac.update(part);
        return hmac.digest();
      };
    },
    ed25519PublicKey(seed) {
      const spki = node.createPublicKey(privateKey(seed)).export({ format: 'der', type: 'spki' });
      return spki.subarray(SPKI_PREFIX.length / 2);
    },
    ed25519Signer(seed) {
      const key = privateKey(seed);
      return (message) => node.sign(null, message, key);
    },
    ed25519Verifier(publicKey) {
      const key = node.createPublicKey({ key: prefixed(SPKI_PREFIX, publicKey), format: 'der', type: 'spki' });
      return (message, signature) => node.verify(null, message, key, signature);
    },
    fromHex: (hex) => Buffer.from(hex, 'hex'),
    toBase64: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
    fromBase64: (text) => Buffer.from(text, 'base64'),
  };
}
