import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { subtreeHash } from '../../../../src/domain/log/subtree-hash.ts';
import { EMPTY_ROOT, isSameHash, leafHash, nodeHash, perfectSubtrees } from '../../../../src/domain/log/tree.ts';
import { bigTree, RecursiveTree, smallTree, testLeaves } from '../../../support/log-trees.ts';
import { hexOf, merkleVectors } from '../../../support/log-vectors.ts';

const { small, big } = merkleVectors;

test.each([0, 1, 32, 100])('the hash of a leaf is SHA-256 of 00 and the record, for a record of $0 bytes', (length) => {
  const record = Buffer.alloc(length, 7);
  expect(hexOf(leafHash(record))).toBe(createHash('sha256').update(Buffer.of(0)).update(record).digest('hex'));
});

test('the hash of a node is SHA-256 of 01, the left and the right hash', () => {
  const [left, right] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const expected = createHash('sha256')
    .update(Buffer.concat([Buffer.of(1), left, right]))
    .digest('hex');
  expect(hexOf(nodeHash(left, right))).toBe(expected);
});

test('a node is not made of a hash of another length', () => {
  const hash = Buffer.alloc(32, 1);
  for (const length of [0, 31, 33]) {
    expect(() => nodeHash(Buffer.alloc(length), hash)).toThrow(RangeError);
    expect(() => nodeHash(hash, Buffer.alloc(length))).toThrow(RangeError);
  }
});

test('the root of the empty tree is SHA-256 of nothing', () => {
  expect(hexOf(EMPTY_ROOT)).toBe(createHash('sha256').digest('hex'));
  expect(hexOf(subtreeHash({ from: 0, to: 0 }, smallTree))).toBe(small.roots_hex_by_size[0]);
});

test.each(small.roots_hex_by_size.map((root, size) => ({ size, root })))(
  'the small tree of the vectors has the root of size $size',
  ({ size, root }) => {
    expect(hexOf(subtreeHash({ from: 0, to: size }, smallTree))).toBe(root);
  },
);

test.each(Object.entries(big.roots_hex))('the large tree of the vectors has the root of size %s', (size, root) => {
  expect(hexOf(subtreeHash({ from: 0, to: Number(size) }, bigTree))).toBe(root);
});

test('roots of 0 to 300 leaves are those of the recursive definition', () => {
  const recursive = new RecursiveTree(testLeaves(300));
  const wrong: number[] = [];
  for (let size = 0; size <= 300; size += 1) {
    const root = subtreeHash({ from: 0, to: size }, bigTree);
    if (!isSameHash(root, recursive.hash({ from: 0, to: size }))) wrong.push(size);
  }
  expect(wrong).toEqual([]);
});

test('a tree is made of one perfect subtree for each 1 in the binary form of its size', () => {
  expect(perfectSubtrees({ from: 0, to: 0 })).toEqual([]);
  expect(perfectSubtrees({ from: 0, to: 8 })).toEqual([{ from: 0, to: 8 }]);
  expect(perfectSubtrees({ from: 0, to: 11 })).toEqual([
    { from: 0, to: 8 },
    { from: 8, to: 10 },
    { from: 10, to: 11 },
  ]);
  const large = perfectSubtrees({ from: 0, to: Number.MAX_SAFE_INTEGER });
  expect(large).toHaveLength(53);
  expect(large[0]).toEqual({ from: 0, to: 2 ** 52 });
});

test('two hashes are the same only if all of their bytes and their lengths are', () => {
  const hash = Buffer.alloc(32, 5);
  expect(isSameHash(hash, Buffer.from(hash))).toBe(true);
  expect(isSameHash(hash, hash.subarray(0, 31))).toBe(false);
  expect(isSameHash(hash.subarray(0, 31), hash)).toBe(false);
  for (let at = 0; at < 32; at += 1) {
    const other = Buffer.from(hash);
    other[at] = 4;
    expect(isSameHash(hash, other)).toBe(false);
  }
});
