import { sha256 } from '../keys/hash.ts';

/**
 * Merkle trees as RFC 6962, section 2.1, defines them (docs/proofs.md, "Tree"). A hash has 32 bytes. Sizes and indices
 * are integers below 2^53. A log of more leaves is not supported.
 */

export const HASH_BYTES = 32;

export const EMPTY_ROOT: Uint8Array = sha256('');

/** sha256 is synchronous, so that one buffer serves all calls. */
const nodeInput = new Uint8Array(1 + 2 * HASH_BYTES);
nodeInput[0] = 1;

/** SHA-256(00 ‖ record). */
export function leafHash(record: Uint8Array): Uint8Array {
  const input = new Uint8Array(1 + record.length);
  input.set(record, 1);
  return sha256(input);
}

/** SHA-256(01 ‖ left ‖ right). RangeError unless both have 32 bytes: bytes of an earlier call would fill the rest. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (!isHash(left) || !isHash(right)) throw new RangeError(`A hash has ${HASH_BYTES} bytes`);
  nodeInput.set(left, 1);
  nodeInput.set(right, 1 + HASH_BYTES);
  return sha256(nodeInput);
}

/** The root over hashes of subtrees that get smaller from left to right, such as those of perfectSubtrees. */
export function joinRightToLeft(hashes: readonly Uint8Array[]): Uint8Array {
  return hashes.reduceRight((right, left) => nodeHash(left, right));
}

/**
 * The leaves `from` to `to` (excluded) that one node of the tree covers. `from` is a multiple of a power of two that is
 * not below the number of leaves.
 */
export interface Subtree {
  readonly from: number;
  readonly to: number;
}

/** The largest power of two that is not above `size`, which is at least 1. */
export function powerOfTwoWithin(size: number): number {
  let power = 1;
  while (power * 2 <= size) power *= 2;
  return power;
}

/** The fewest subtrees of 2^n leaves that make up this one, from left to right. None for an empty one. */
export function perfectSubtrees({ from, to }: Subtree): readonly Subtree[] {
  const parts: Subtree[] = [];
  for (let start = from; start < to; ) {
    const end = start + powerOfTwoWithin(to - start);
    parts.push({ from: start, to: end });
    start = end;
  }
  return parts;
}

export function isHash(bytes: Uint8Array): boolean {
  return bytes.length === HASH_BYTES;
}

/** Whether two hashes are equal. They are public, so the time that this takes may depend on them. */
export function isSameHash(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
