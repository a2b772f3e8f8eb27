import { describe, expect, test } from 'vitest';
import { compactRangeAt, type HashSource, subtreeHash } from '../../../../src/domain/log/subtree-hash.ts';
import { isSameHash, nodeHash, type Subtree } from '../../../../src/domain/log/tree.ts';
import { consistencyPath, inclusionPath, isConsistent, isIncluded } from '../../../../src/domain/log/tree-proof.ts';
import {
  bigTree,
  largeTree,
  RecursiveTree,
  recursivePath,
  recursiveSubproof,
  smallTree,
  testLeaves,
} from '../../../support/log-trees.ts';
import { hexOf, logVectors, merkleVectors, ofHex } from '../../../support/log-vectors.ts';
import { isNightly } from '../../../support/nightly.ts';

const { small, big } = merkleVectors;
/** Beyond 128, so that paths differ in their number of levels by seven. */
const sizeMax = isNightly ? 300 : 140;
const leaves = testLeaves(sizeMax);
const recursive = new RecursiveTree(leaves);
const rootOf = (size: number) => recursive.hash({ from: 0, to: size });
const hashesOf = (path: readonly Subtree[]) => path.map((subtree) => recursive.hash(subtree));
const made = (path: readonly Subtree[], hashAt: HashSource) =>
  path.map((subtree) => hexOf(subtreeHash(subtree, hashAt)));
const wholeRoot = (size: number, hashAt: HashSource) => subtreeHash({ from: 0, to: size }, hashAt);

/** One bit changed, one hash missing, one twice, one cut short, and one too many at either end or in the middle. */
function changedAt(hashes: readonly Uint8Array[], at: number): readonly (readonly Uint8Array[])[] {
  const other = Buffer.alloc(32, 1);
  const added = [[...hashes, other], [other, ...hashes], hashes.toSpliced(at, 0, other)];
  const changed = hashes[at];
  if (changed === undefined) return added;
  const bit = Buffer.from(changed);
  bit[at] = (bit[at] ?? 0) ^ 1;
  const shorter = changed.subarray(0, 31);
  return [
    ...added,
    hashes.with(at, bit),
    hashes.toSpliced(at, 1),
    hashes.toSpliced(at, 0, changed),
    hashes.with(at, shorter),
  ];
}

/** All of these changes everywhere in small trees; one in one place of the others. */
function changedLists(hashes: readonly Uint8Array[], size: number, index: number): readonly (readonly Uint8Array[])[] {
  if (size <= 24) return [...hashes.keys(), hashes.length].flatMap((at) => changedAt(hashes, at));
  const lists = changedAt(hashes, index % (hashes.length + 1));
  return lists.slice(size % lists.length).slice(0, 1);
}

describe('inclusion', () => {
  test.each([
    ...small.inclusion.map((vector) => ({ ...vector, tree: 'small', hashAt: smallTree })),
    ...big.inclusion.map((vector) => ({ ...vector, tree: 'large', hashAt: bigTree })),
  ])('the proof of the vectors is made and verifies: $tree tree, index $index of $size', (vector) => {
    const { index, size, proof_hex, hashAt } = vector;
    expect(made(inclusionPath(index, size), hashAt)).toEqual(proof_hex);
    const claim = { leafHash: hashAt(0, index), index, size, root: wholeRoot(size, hashAt) };
    expect(isIncluded({ ...claim, hashes: proof_hex.map(ofHex) })).toBe(true);
  });

  test(`the path of every leaf in trees of 1 to ${sizeMax} is the one of the recursive definition`, () => {
    const wrong: string[] = [];
    for (let size = 1; size <= sizeMax; size += 1)
      for (let index = 0; index < size; index += 1) {
        const path = inclusionPath(index, size);
        if (JSON.stringify(path) !== JSON.stringify(recursivePath(index, 0, size))) wrong.push(`${index} of ${size}`);
      }
    expect(wrong).toEqual([]);
  });

  test('the hash of every subtree on these paths is the one of the recursive definition', () => {
    const subtrees = new Map<string, Subtree>();
    for (let size = 1; size <= sizeMax; size += 1)
      for (const path of [inclusionPath(0, size), inclusionPath(size >> 1, size), inclusionPath(size - 1, size)])
        for (const subtree of path) subtrees.set(JSON.stringify(subtree), subtree);
    expect(subtrees.size).toBeGreaterThan(2 * sizeMax);
    const wrong = [...subtrees.values()].filter(
      (subtree) => !isSameHash(subtreeHash(subtree, bigTree), recursive.hash(subtree)),
    );
    expect(wrong).toEqual([]);
  });

  test('every proof verifies, and none with a hash that is changed, missing or left over', () => {
    const wrong: string[] = [];
    for (let size = 1; size <= sizeMax; size += 1)
      for (const [index, leaf] of leaves.slice(0, size).entries()) {
        const hashes = hashesOf(inclusionPath(index, size));
        const claim = { leafHash: leaf, index, size, root: rootOf(size) };
        if (!isIncluded({ ...claim, hashes })) wrong.push(`refused ${index} of ${size}`);
        for (const changed of changedLists(hashes, size, index))
          if (isIncluded({ ...claim, hashes: changed })) wrong.push(`accepted ${index} of ${size}`);
      }
    expect(wrong).toEqual([]);
  });

  test('a proof does not verify for another index, leaf or root', () => {
    const wrong: string[] = [];
    for (let size = 1; size <= 70; size += 1)
      for (const [index, leaf] of leaves.slice(0, size).entries()) {
        const claim = { leafHash: leaf, index, size, root: rootOf(size), hashes: hashesOf(inclusionPath(index, size)) };
        for (let other = 0; other <= size; other += 1)
          if (other !== index && isIncluded({ ...claim, index: other })) wrong.push(`${index} as ${other} of ${size}`);
        if (isIncluded({ ...claim, leafHash: claim.root }) && size > 1) wrong.push(`leaf ${index} of ${size}`);
        if (isIncluded({ ...claim, root: rootOf(size + 1) })) wrong.push(`root ${index} of ${size}`);
      }
    expect(wrong).toEqual([]);
  });

  test('a proof that ends below the root or goes on above it does not verify, whatever the root is', () => {
    const [first, second] = leaves;
    if (first === undefined || second === undefined) throw new Error('no leaves');
    const claim = { leafHash: first, index: 0, size: 2, root: rootOf(2), hashes: [second] };
    expect(isIncluded(claim)).toBe(true);
    expect(isIncluded({ ...claim, size: 3 })).toBe(false);
    const above = nodeHash(second, claim.root);
    expect(isIncluded({ ...claim, root: above, hashes: [second, second] })).toBe(false);
  });

  test.each([
    [0, 0],
    [1, 1],
    [-1, 2],
    [0.5, 2],
    [Number.NaN, 2],
    [0, Number.NaN],
    [0, 2 ** 53],
    [2 ** 53, 2 ** 53 + 2],
  ])('no leaf %d is in a tree of %d leaves', (index, size) => {
    expect(() => inclusionPath(index, size)).toThrow(RangeError);
    const [leaf] = testLeaves(1);
    if (leaf === undefined) throw new Error('no leaf');
    expect(isIncluded({ leafHash: leaf, index, size, root: leaf, hashes: [] })).toBe(false);
  });
});

describe('consistency', () => {
  test.each([
    ...small.consistency.map((vector) => ({ ...vector, tree: 'small', hashAt: smallTree })),
    ...big.consistency.map((vector) => ({ ...vector, tree: 'large', hashAt: bigTree })),
  ])(
    'the proof of the vectors is made and verifies: $tree tree, from $from to $to',
    ({ from, to, proof_hex, hashAt }) => {
      expect(made(consistencyPath(from, to), hashAt)).toEqual(proof_hex);
      const claim = { oldSize: from, oldRoot: wholeRoot(from, hashAt), newSize: to, newRoot: wholeRoot(to, hashAt) };
      expect(isConsistent({ ...claim, hashes: proof_hex.map(ofHex) })).toBe(true);
    },
  );

  test.each(logVectors.ledger.consistency)(
    'the proof of the ledger of the vectors verifies: from $from to $to',
    (vector) => {
      const { from, to, proof_hex } = vector;
      const checkpointOf = (size: number) => logVectors.ledger.checkpoints.find((one) => one.size === size);
      const oldRoot = ofHex(checkpointOf(from)?.root_hex ?? '');
      const newRoot = ofHex(checkpointOf(to)?.root_hex ?? '');
      const claim = { oldSize: from, oldRoot, newSize: to, newRoot, hashes: proof_hex.map(ofHex) };
      expect(isConsistent(claim)).toBe(true);
      expect(isConsistent({ ...claim, oldRoot: newRoot })).toBe(from === to);
    },
  );

  test(`the path between all sizes of 1 to ${sizeMax} is the one of the recursive definition`, () => {
    const wrong: string[] = [];
    for (let to = 1; to <= sizeMax; to += 1)
      for (let from = 1; from <= to; from += 1) {
        const path = consistencyPath(from, to);
        if (JSON.stringify(path) !== JSON.stringify(recursiveSubproof(from, 0, to, true))) wrong.push(`${from} ${to}`);
      }
    expect(wrong).toEqual([]);
  });

  test('every proof of consistency verifies, and none with a hash that is changed, missing or left over', () => {
    const wrong: string[] = [];
    for (let newSize = 1; newSize <= sizeMax; newSize += 1)
      for (let oldSize = 1; oldSize <= newSize; oldSize += 1) {
        const hashes = hashesOf(consistencyPath(oldSize, newSize));
        const claim = { oldSize, oldRoot: rootOf(oldSize), newSize, newRoot: rootOf(newSize) };
        if (!isConsistent({ ...claim, hashes })) wrong.push(`refused ${oldSize} to ${newSize}`);
        for (const changed of changedLists(hashes, newSize, oldSize))
          if (isConsistent({ ...claim, hashes: changed })) wrong.push(`accepted ${oldSize} to ${newSize}`);
      }
    expect(wrong).toEqual([]);
  });

  test('a proof of consistency does not verify for another old or new root, nor with the sizes exchanged', () => {
    const wrong: string[] = [];
    for (let newSize = 2; newSize <= 70; newSize += 1)
      for (let oldSize = 1; oldSize <= newSize; oldSize += 1) {
        const hashes = hashesOf(consistencyPath(oldSize, newSize));
        const claim = { oldSize, oldRoot: rootOf(oldSize), newSize, newRoot: rootOf(newSize), hashes };
        const others = [
          { ...claim, oldRoot: rootOf(oldSize + 1) },
          { ...claim, newRoot: rootOf(newSize + 1) },
          ...(oldSize < newSize ? [{ ...claim, oldSize: newSize, newSize: oldSize }] : []),
        ];
        if (others.some(isConsistent)) wrong.push(`${oldSize} to ${newSize}`);
      }
    expect(wrong).toEqual([]);
  });

  test('a proof of consistency that ends below the root or goes on above it does not verify', () => {
    const [first, second] = leaves;
    if (first === undefined || second === undefined) throw new Error('no leaves');
    const claim = { oldSize: 1, oldRoot: first, newSize: 2, newRoot: rootOf(2), hashes: [second] };
    expect(isConsistent(claim)).toBe(true);
    expect(isConsistent({ ...claim, newSize: 3 })).toBe(false);
    const above = nodeHash(second, claim.newRoot);
    const oldAbove = nodeHash(second, first);
    expect(isConsistent({ ...claim, oldRoot: oldAbove, newRoot: above, hashes: [second, second] })).toBe(false);
    // Here the old root is not the first hash of the list, so it goes up as well.
    const three = { oldSize: 3, oldRoot: rootOf(3), newSize: 4, newRoot: rootOf(4) };
    const hashes = hashesOf(consistencyPath(3, 4));
    expect(isConsistent({ ...three, hashes })).toBe(true);
    const higher = { oldRoot: nodeHash(second, three.oldRoot), newRoot: nodeHash(second, three.newRoot) };
    expect(isConsistent({ ...three, ...higher, hashes: [...hashes, second] })).toBe(false);
  });

  test.each([
    [0, 0],
    [0, 1],
    [2, 1],
    [-1, 1],
    [1.5, 2],
    [Number.NaN, 2],
    [1, 2 ** 53],
  ])('no tree of %d leaves is the beginning of a tree of %d', (oldSize, newSize) => {
    expect(() => consistencyPath(oldSize, newSize)).toThrow(RangeError);
    const [leaf] = testLeaves(1);
    if (leaf === undefined) throw new Error('no leaf');
    for (const hashes of [[], [leaf]])
      expect(isConsistent({ oldSize, oldRoot: leaf, newSize, newRoot: leaf, hashes })).toBe(false);
  });
});

test.each([2 ** 31 + 77, 2 ** 40 + 12_345, 2 ** 53 - 1])('proofs in a tree of %d leaves verify', (size) => {
  const indices = [0, 255, 2 ** 31 - 1, Math.floor(size / 3), size - 1];
  const hashAt = largeTree([...indices, ...indices.map((index) => index + 1)]);
  const newRoot = wholeRoot(size, hashAt);
  for (const index of indices) {
    const hashes = inclusionPath(index, size).map((subtree) => subtreeHash(subtree, hashAt));
    expect(isIncluded({ leafHash: hashAt(0, index), index, size, root: newRoot, hashes })).toBe(true);
    expect(isIncluded({ leafHash: hashAt(0, index ^ 1), index, size, root: newRoot, hashes })).toBe(false);
    const oldRoot = wholeRoot(index + 1, hashAt);
    const between = consistencyPath(index + 1, size).map((subtree) => subtreeHash(subtree, hashAt));
    expect(isConsistent({ oldSize: index + 1, oldRoot, newSize: size, newRoot, hashes: between })).toBe(true);
  }
  const range = compactRangeAt(size - 1, hashAt);
  range.append(hashAt(0, size - 1));
  expect(hexOf(range.root())).toBe(hexOf(newRoot));
});
