import { EMPTY_ROOT, HASH_BYTES, isHash, joinRightToLeft, nodeHash } from './tree.ts';

/**
 * What has to be kept of a tree to append to it and to know its root: the roots of its perfect subtrees, one for each 1
 * in the binary form of its size. An append computes one hash of a node on average; the root takes one for each perfect
 * subtree but the first.
 */
export class CompactRange {
  #size: number;
  /** The hashes side by side, largest subtree first. One array for all of them takes the least memory. */
  #hashes: Uint8Array;
  #count: number;

  /**
   * `hashes`: see `hashes()`; none for the empty tree. RangeError unless there is one of 32 bytes for each 1 in
   * `size`.
   */
  constructor(size = 0, hashes: readonly Uint8Array[] = []) {
    if (!Number.isSafeInteger(size) || size < 0 || hashes.length !== onesIn(size) || !hashes.every(isHash))
      throw new RangeError(`No tree of size ${size} has ${hashes.length} perfect subtrees`);
    this.#size = size;
    this.#count = hashes.length;
    this.#hashes = new Uint8Array(hashes.length * HASH_BYTES);
    for (const [at, hash] of hashes.entries()) this.#hashes.set(hash, at * HASH_BYTES);
  }

  get size(): number {
    return this.#size;
  }

  /** RangeError for a hash of another length than 32 bytes. */
  append(leafHash: Uint8Array): void {
    if (!isHash(leafHash)) throw new RangeError(`A hash has ${HASH_BYTES} bytes, not ${leafHash.length}`);
    let hash = leafHash;
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2) {
      this.#count -= 1;
      hash = nodeHash(this.#at(this.#count), hash);
    }
    if ((this.#count + 1) * HASH_BYTES > this.#hashes.length) {
      const larger = new Uint8Array((this.#count + 1) * HASH_BYTES);
      larger.set(this.#hashes);
      this.#hashes = larger;
    }
    this.#hashes.set(hash, this.#count * HASH_BYTES);
    this.#count += 1;
    this.#size += 1;
  }

  root(): Uint8Array {
    return this.#size === 0 ? EMPTY_ROOT : joinRightToLeft(this.hashes());
  }

  /** Copies of the roots of the perfect subtrees, largest subtree first. */
  hashes(): readonly Uint8Array[] {
    return Array.from({ length: this.#count }, (_, at) => this.#at(at).slice());
  }

  #at(index: number): Uint8Array {
    return this.#hashes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES);
  }
}

function onesIn(size: number): number {
  let ones = 0;
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) ones += rest % 2;
  return ones;
}
