import { isHash, isSameHash, nodeHash, powerOfTwoWithin, type Subtree } from './tree.ts';

/**
 * Proofs of inclusion and of consistency (docs/proofs.md, "Proofs"). A proof is a list of hashes. To make one, compute
 * the hash of each subtree that `inclusionPath` or `consistencyPath` names (subtreeHash).
 */

/**
 * The subtrees whose hashes prove that the leaf at `index` is in the tree of `size` leaves, from the leaf's sibling up
 * (RFC 6962, section 2.1.1). RangeError unless 0 <= index < size.
 */
export function inclusionPath(index: number, size: number): readonly Subtree[] {
  if (!isCount(index) || !isCount(size) || index >= size) throw new RangeError(`No leaf ${index} in a tree of ${size}`);
  return pathFrom({ from: 0, to: size }, (from, to) => (to - from === 1 ? [] : null), index);
}

/**
 * The subtrees whose hashes prove that the tree of `oldSize` leaves is the beginning of the tree of `newSize` leaves
 * (RFC 6962, section 2.1.2). RangeError unless 1 <= oldSize <= newSize.
 */
export function consistencyPath(oldSize: number, newSize: number): readonly Subtree[] {
  if (!isCount(oldSize) || !isCount(newSize) || oldSize < 1 || oldSize > newSize)
    throw new RangeError(`No tree of ${oldSize} is the beginning of a tree of ${newSize}`);
  // The old tree is made of whole subtrees. The verifier knows the hash of the one that begins at leaf 0.
  const whole = (from: number, to: number) => (to !== oldSize ? null : from === 0 ? [] : [{ from, to }]);
  return pathFrom({ from: 0, to: newSize }, whole, oldSize - 1);
}

/** Goes from the root down to the subtree at which `end` gives its first hashes, and puts each sibling behind them. */
function pathFrom(
  { from, to }: Subtree,
  end: (from: number, to: number) => readonly Subtree[] | null,
  leaf: number,
): readonly Subtree[] {
  const first = end(from, to);
  if (first !== null) return first;
  const middle = from + largestPowerBelow(to - from);
  return leaf < middle
    ? [...pathFrom({ from, to: middle }, end, leaf), { from: middle, to }]
    : [...pathFrom({ from: middle, to }, end, leaf), { from, to: middle }];
}

/** The largest power of two below `size`, which is at least 2. */
function largestPowerBelow(size: number): number {
  return powerOfTwoWithin(size - 1);
}

interface InclusionClaim {
  readonly leafHash: Uint8Array;
  readonly index: number;
  readonly size: number;
  readonly root: Uint8Array;
  readonly hashes: readonly Uint8Array[];
}

/** Whether the hashes prove that the leaf is at `index` of the tree with this size and root (RFC 9162, 2.1.3.2). */
export function isIncluded({ leafHash, index, size, root, hashes }: InclusionClaim): boolean {
  if (!isCount(index) || !isCount(size) || index >= size || ![leafHash, ...hashes].every(isHash)) return false;
  const place = new Place(index, size - 1);
  let hash = leafHash;
  for (const sibling of hashes) {
    if (place.isAtTop) return false;
    hash = place.siblingIsLeft ? nodeHash(sibling, hash) : nodeHash(hash, sibling);
    place.goUp();
  }
  return place.isAtTop && isSameHash(hash, root);
}

interface ConsistencyClaim {
  readonly oldSize: number;
  readonly oldRoot: Uint8Array;
  readonly newSize: number;
  readonly newRoot: Uint8Array;
  readonly hashes: readonly Uint8Array[];
}

/**
 * Whether the hashes prove that the old tree is the beginning of the new one (RFC 9162, 2.1.4.2). Equal sizes need
 * equal roots and no hash. false for an old size of 0, which no checkpoint has.
 */
export function isConsistent({ oldSize, oldRoot, newSize, newRoot, hashes }: ConsistencyClaim): boolean {
  if (!isCount(oldSize) || !isCount(newSize) || oldSize < 1 || oldSize > newSize) return false;
  if (![oldRoot, newRoot, ...hashes].every(isHash)) return false;
  if (oldSize === newSize) return hashes.length === 0 && isSameHash(oldRoot, newRoot);
  const isPowerOfTwo = powerOfTwoWithin(oldSize) === oldSize;
  const [first, ...others] = isPowerOfTwo ? [oldRoot, ...hashes] : hashes;
  if (first === undefined) return false;
  const place = new Place(oldSize - 1, newSize - 1);
  place.goUpWhileRight();
  let oldHash = first;
  let newHash = first;
  for (const sibling of others) {
    if (place.isAtTop) return false;
    if (place.siblingIsLeft) {
      oldHash = nodeHash(sibling, oldHash);
      newHash = nodeHash(sibling, newHash);
    } else newHash = nodeHash(newHash, sibling);
    place.goUp();
  }
  return place.isAtTop && isSameHash(oldHash, oldRoot) && isSameHash(newHash, newRoot);
}

/** A node on the way from a leaf to the root, and the last node of its row: fn and sn of RFC 9162. */
class Place {
  #node: number;
  #last: number;

  constructor(node: number, last: number) {
    this.#node = node;
    this.#last = last;
  }

  get isAtTop(): boolean {
    return this.#last === 0;
  }

  get siblingIsLeft(): boolean {
    return this.#node % 2 === 1 || this.#node === this.#last;
  }

  /** To the node over this one and its sibling. A last node without a sibling in its row goes up until it has one. */
  goUp(): void {
    if (this.siblingIsLeft) while (this.#node % 2 === 0 && this.#node !== 0) this.#halve();
    this.#halve();
  }

  goUpWhileRight(): void {
    while (this.#node % 2 === 1) this.#halve();
  }

  #halve(): void {
    this.#node = Math.floor(this.#node / 2);
    this.#last = Math.floor(this.#last / 2);
  }
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
