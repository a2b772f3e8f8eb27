import { createHash } from 'node:crypto';

/** RFC 8032, section 5.1: the order of the base point. */
export const groupOrder = 2n ** 252n + 27742317777372353535851937790883648493n;

/** The encoding of the identity point. */
export const identityPoint = Buffer.from([1, ...new Uint8Array(31)]);

/**
 * What only the owner of a seed can make: the signature of a nonce of 0, whose R is the identity point. It fulfils the
 * equation of RFC 8032, and gives the private key away.
 */
export function signatureOfNonceZero(seed: Uint8Array, publicKey: Uint8Array, message: Uint8Array): Buffer {
  const scalar = createHash('sha512').update(seed).digest().subarray(0, 32);
  scalar[0] = (scalar[0] ?? 0) & 248;
  scalar[31] = ((scalar[31] ?? 0) & 127) | 64;
  const challenge = createHash('sha512').update(identityPoint).update(publicKey).update(message).digest();
  return Buffer.concat([identityPoint, bytesOf((numberOf(challenge) * numberOf(scalar)) % groupOrder)]);
}

/** The same signature with S not reduced. */
export function withLargeS(signature: Uint8Array): Buffer {
  return Buffer.concat([signature.subarray(0, 32), bytesOf(numberOf(signature.subarray(32)) + groupOrder)]);
}

/** Little-endian, as RFC 8032 writes numbers. */
export function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}

/** 32 bytes of a number. */
export function bytesOf(number: bigint): Buffer {
  return Buffer.from(number.toString(16).padStart(64, '0'), 'hex').reverse();
}
