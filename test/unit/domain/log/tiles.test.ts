import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { subtreeHash, tileRoot } from '../../../../src/domain/log/subtree-hash.ts';
import { hashesNeeded, levelSize, TILE_HASHES } from '../../../../src/domain/log/tiles.ts';
import type { Subtree } from '../../../../src/domain/log/tree.ts';
import { consistencyPath, inclusionPath } from '../../../../src/domain/log/tree-proof.ts';
import { bigTree, largeTree, testLeaves } from '../../../support/log-trees.ts';
import { hexOf, merkleVectors } from '../../../support/log-vectors.ts';

const { big } = merkleVectors;
const whole = (size: number): Subtree => ({ from: 0, to: size });

test.each(big.tiles)('the hashes of the level are those of the vectors in $path', ({ path, bytes, sha256_hex }) => {
  const [, level, index, width = `${TILE_HASHES}`] = /^tile\/(\d+)\/(\d+)(?:\.p\/(\d+))?$/.exec(path) ?? [];
  const from = Number(index) * TILE_HASHES;
  const to = Math.min(from + TILE_HASHES, levelSize(Number(level), big.size));
  expect(to - from).toBe(Number(width));
  const tile = Buffer.concat(Array.from({ length: to - from }, (_, at) => bigTree(Number(level), from + at)));
  expect(tile).toHaveLength(bytes);
  expect(createHash('sha256').update(tile).digest('hex')).toBe(sha256_hex);
});

test.each([0, 128, 255, 512])('a tile of %d hashes is not full and has no root', (count) => {
  expect(() => tileRoot(testLeaves(count))).toThrow(RangeError);
});

describe('the hashes that are needed', () => {
  test('for the root of 70,000 leaves are one tile part a level, and the rows of the last tile', () => {
    expect(hashesNeeded([whole(70_000)], 70_000)).toEqual({
      tiles: [
        { level: 1, index: 1, hashes: 17 },
        { level: 2, index: 0, hashes: 1 },
      ],
      rows: { from: 273 * 256, to: 70_000 },
    });
  });

  test('for a full tile are its root alone, and no rows', () => {
    expect(hashesNeeded([whole(256)], 256)).toEqual({ tiles: [{ level: 1, index: 0, hashes: 1 }], rows: null });
    expect(hashesNeeded([whole(255)], 255)).toEqual({ tiles: [], rows: { from: 0, to: 255 } });
    expect(hashesNeeded([whole(0)], 0)).toEqual({ tiles: [], rows: null });
  });

  test('for an old tree come from the tile that its last leaves are in, if it is full by now', () => {
    expect(hashesNeeded([whole(300)], 512)).toEqual({
      tiles: [
        { level: 0, index: 1, hashes: 44 },
        { level: 1, index: 0, hashes: 1 },
      ],
      rows: null,
    });
    expect(hashesNeeded([whole(300)], 511).rows).toEqual({ from: 256, to: 300 });
  });

  test('for an inclusion proof in ten million leaves are at most five tiles and 255 rows', () => {
    const size = 10_000_000;
    for (const index of [0, 1_234_567, 9_999_872, size - 1]) {
      const { tiles, rows } = hashesNeeded([...inclusionPath(index, size), whole(size)], size);
      expect(tiles.length).toBeLessThanOrEqual(5);
      expect((rows?.to ?? 0) - (rows?.from ?? 0)).toBeLessThan(TILE_HASHES);
    }
  });

  test('are all that subtreeHash reads, each hash once for a subtree, and the parts end with one that it reads', () => {
    const size = 70_000;
    const asked = [
      ...[0, 255, 256, 65_535, 69_887, 69_888, 69_999].map((index) => inclusionPath(index, size)),
      ...[1, 255, 256, 257, 65_536, 69_888, 69_999].map((from) => consistencyPath(from, size)),
      ...[1, 255, 256, 257, 511, 65_535, 65_536, 65_793, size].map((end) => [whole(end)]),
    ];
    for (const subtrees of asked) {
      const read = new Set<string>();
      for (const subtree of subtrees) {
        const once = new Set<string>();
        subtreeHash(subtree, (level, position) => {
          expect(once.has(`${level}/${position}`)).toBe(false);
          once.add(`${level}/${position}`);
          return bigTree(level, position);
        });
        for (const place of once) read.add(place);
      }
      const { tiles, rows } = hashesNeeded(subtrees, size);
      const named = new Set<string>();
      const add = (level: number, from: number, to: number) => {
        for (let position = from; position < to; position += 1) named.add(`${level}/${position}`);
        expect(read).toContain(`${level}/${to - 1}`);
      };
      for (const { level, index, hashes } of tiles) add(level, index * TILE_HASHES, index * TILE_HASHES + hashes);
      if (rows !== null) add(0, rows.from, rows.to);
      expect([...read].filter((place) => !named.has(place))).toEqual([]);
      expect(new Set(tiles.map(({ level, index }) => `${level}/${index}`)).size).toBe(tiles.length);
    }
  });

  test('of a tree of 2^40 leaves are read at their levels', () => {
    const size = 2 ** 40 + 3;
    const { tiles, rows } = hashesNeeded([whole(size)], size);
    expect(tiles).toEqual([{ level: 5, index: 0, hashes: 1 }]);
    expect(rows).toEqual({ from: 2 ** 40, to: size });
    const hashAt = largeTree([]);
    expect(hexOf(subtreeHash(whole(2 ** 40), hashAt))).toBe(hexOf(hashAt(5, 0)));
    expect([0, 1, 5, 6].map((level) => levelSize(level, size))).toEqual([size, 2 ** 32, 1, 0]);
  });
});
