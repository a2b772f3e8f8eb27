import { createHash } from 'node:crypto';
import { bytesOf, groupOrder, numberOf } from './nonce-zero.ts';
import { readVectors } from './vectors.ts';

/** A signature of conformance/vectors/ed25519.json, and what this service decides of its key and of it. */
export interface Ed25519Vector {
  readonly what: string;
  readonly public_key_hex: string;
  readonly message_hex: string;
  readonly signature_hex: string;
  readonly key_accepted: boolean;
  readonly valid: boolean;
}

export const { vectors: ed25519Vectors } = readVectors<{ readonly vectors: readonly Ed25519Vector[] }>(
  'ed25519.json',
  'conformance/vectors',
);

const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');
const modulo = (number: bigint): bigint => ((number % groupOrder) + groupOrder) % groupOrder;

/** SHA-512(R ‖ A ‖ M) mod L. */
function challengeOf({ public_key_hex, signature_hex }: Ed25519Vector, message: Uint8Array): bigint {
  const hash = createHash('sha512').update(bytes(signature_hex).subarray(0, 32)).update(bytes(public_key_hex));
  return modulo(numberOf(hash.update(message).digest()));
}

function inverseOf(number: bigint): bigint {
  let [result, base] = [1n, number];
  for (let power = groupOrder - 2n; power > 0n; power >>= 1n) {
    if (power & 1n) result = modulo(result * base);
    base = modulo(base * base);
  }
  return result;
}

const sOf = ({ signature_hex }: Ed25519Vector): bigint => numberOf(bytes(signature_hex).subarray(32));

/** The private scalar of the key that may be enrolled. The signature whose R is the identity gives it away. */
function privateScalar(): bigint {
  const given = ed25519Vectors.find(({ what }) => what === 'R is the identity');
  if (given === undefined) throw new Error('the vectors have no signature whose R is the identity');
  return modulo(sOf(given) * inverseOf(challengeOf(given, bytes(given.message_hex))));
}

/**
 * The signature of the same kind of another message, with the R of the vector. S is r + k·a as in the vector, and stays
 * not reduced if it is not reduced there. Under a key that may not be enrolled it is the signature of the vector.
 */
export function carriedOver(vector: Ed25519Vector, message: Uint8Array): Buffer {
  const signature = bytes(vector.signature_hex);
  if (!vector.key_accepted) return signature;
  const change = challengeOf(vector, message) - challengeOf(vector, bytes(vector.message_hex));
  const reduced = modulo(sOf(vector) + change * privateScalar());
  const s = sOf(vector) < groupOrder ? reduced : reduced + groupOrder;
  return Buffer.concat([signature.subarray(0, 32), bytesOf(s)]);
}
