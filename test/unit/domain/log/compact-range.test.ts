import { expect, test } from 'vitest';
import { CompactRange } from '../../../../src/domain/log/compact-range.ts';
import { compactRangeAt } from '../../../../src/domain/log/subtree-hash.ts';
import { bigTree, RecursiveTree, testLeaves } from '../../../support/log-trees.ts';
import { hexOf, merkleVectors } from '../../../support/log-vectors.ts';

const { big } = merkleVectors;

/** A range that was appended to leaf by leaf, at each size of the vectors. */
const appended = new Map<number, { readonly hashes: readonly string[]; readonly root: string }>();
const growing = new CompactRange();
while (growing.size < big.size) {
  growing.append(bigTree(0, growing.size));
  if (String(growing.size) in big.edges_hex)
    appended.set(growing.size, { hashes: growing.hashes().map(hexOf), root: hexOf(growing.root()) });
}

test.each(Object.entries(big.edges_hex))(
  'the compact range of size %s holds the hashes of the vectors',
  (text, hashes) => {
    const size = Number(text);
    expect(appended.get(size)).toEqual({ hashes, root: big.roots_hex[text] });
    expect(compactRangeAt(size, bigTree).hashes().map(hexOf)).toEqual(hashes);
  },
);

test('appended leaf by leaf, a compact range has the root of the recursive definition at each of 0 to 300 leaves', () => {
  const leaves = testLeaves(300);
  const recursive = new RecursiveTree(leaves);
  const range = new CompactRange();
  const wrong: number[] = [];
  for (const [size, leaf] of [...leaves.entries(), [300, null] as const]) {
    if (range.size !== size || hexOf(range.root()) !== hexOf(recursive.hash({ from: 0, to: size }))) wrong.push(size);
    if (leaf !== null) range.append(leaf);
  }
  expect(wrong).toEqual([]);
});

test('a compact range that was made from its hashes goes on as the one they are from', () => {
  for (const size of [0, 1, 2, 3, 255, 256, 300]) {
    const range = compactRangeAt(size, bigTree);
    const again = new CompactRange(size, range.hashes());
    for (let index = size; index < size + 5; index += 1) {
      range.append(bigTree(0, index));
      again.append(bigTree(0, index));
    }
    expect(again.hashes().map(hexOf)).toEqual(range.hashes().map(hexOf));
    expect(hexOf(again.root())).toBe(hexOf(compactRangeAt(size + 5, bigTree).root()));
  }
});

test('an append changes neither a root nor hashes that were read before', () => {
  const range = compactRangeAt(3, bigTree);
  const [root, hashes] = [range.root(), range.hashes()];
  const before = [root, ...hashes].map(hexOf);
  range.append(bigTree(0, 3));
  expect([root, ...hashes].map(hexOf)).toEqual(before);
  const single = compactRangeAt(1, bigTree);
  const rootOfOne = single.root();
  single.append(bigTree(0, 1));
  expect(hexOf(rootOfOne)).toBe(hexOf(bigTree(0, 0)));
});

test.each([
  ['too few hashes', 3, 1],
  ['too many hashes', 2, 2],
  ['a negative size', -1, 0],
  ['half a leaf', 0.5, 0],
  ['a size of 2^53', 2 ** 53, 1],
])('a compact range is not made with %s', (_, size, count) => {
  expect(() => new CompactRange(size, Array(count).fill(bigTree(0, 0)))).toThrow(RangeError);
});

test.each([0, 31, 33])('a compact range takes no hash of %d bytes', (length) => {
  const wrong = Buffer.alloc(length);
  expect(() => new CompactRange(1, [wrong])).toThrow(RangeError);
  const range = new CompactRange();
  expect(() => range.append(wrong)).toThrow(RangeError);
  expect(range.size).toBe(0);
});
