import { createHash } from 'node:crypto';
import { type HashSource, tileRoot } from '../../src/domain/log/subtree-hash.ts';
import { TILE_HASHES } from '../../src/domain/log/tiles.ts';
import { leafHash, type Subtree } from '../../src/domain/log/tree.ts';
import { MemoryHashes } from './log-hashes.ts';
import { merkleVectors, ofHex } from './log-vectors.ts';

const sha256 = (...parts: readonly Uint8Array[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest();

/** Leaf i of the large tree of merkle.json: SHA-256("svc-test-leaf" 00 ‖ u64be(i)). */
function testRecord(index: number): Buffer {
  const place = Buffer.alloc(8);
  place.writeBigUInt64BE(BigInt(index));
  return sha256(Buffer.from('svc-test-leaf\0'), place);
}

export function testLeaves(size: number): readonly Uint8Array[] {
  return Array.from({ length: size }, (_, index) => leafHash(testRecord(index)));
}

/** The trees of merkle.json. */
export const bigTree = new MemoryHashes(testLeaves(merkleVectors.big.size)).hashAt;
export const smallTree = new MemoryHashes(merkleVectors.small.leaves_hex.map((hex) => leafHash(ofHex(hex)))).hashAt;

/** The recursive definitions of RFC 6962, section 2.1, over the hashes of leaves. */
export class RecursiveTree {
  readonly #leaves: readonly Uint8Array[];
  readonly #known = new Map<string, Uint8Array>();

  constructor(leaves: readonly Uint8Array[]) {
    this.#leaves = leaves;
  }

  /** MTH(D[from:to]). */
  hash({ from, to }: Subtree): Uint8Array {
    const key = `${from}:${to}`;
    const known = this.#known.get(key) ?? this.#hash(from, to);
    this.#known.set(key, known);
    return known;
  }

  #hash(from: number, to: number): Uint8Array {
    if (to === from) return sha256();
    if (to - from === 1) return this.#leaves[from] ?? sha256();
    const middle = from + split(to - from);
    return sha256(Buffer.of(1), this.hash({ from, to: middle }), this.hash({ from: middle, to }));
  }
}

/** PATH(index, D[from:to]). */
export function recursivePath(index: number, from: number, to: number): Subtree[] {
  if (to - from === 1) return [];
  const k = split(to - from);
  return index < k
    ? [...recursivePath(index, from, from + k), { from: from + k, to }]
    : [...recursivePath(index - k, from + k, to), { from, to: from + k }];
}

/** SUBPROOF(m, D[from:to], isOldRoot). */
export function recursiveSubproof(m: number, from: number, to: number, isOldRoot: boolean): Subtree[] {
  if (m === to - from) return isOldRoot ? [] : [{ from, to }];
  const k = split(to - from);
  return m <= k
    ? [...recursiveSubproof(m, from, from + k, isOldRoot), { from: from + k, to }]
    : [...recursiveSubproof(m - k, from + k, to, false), { from, to: from + k }];
}

/** The largest power of two below n. */
function split(n: number): number {
  return 2 ** (Math.ceil(Math.log2(n)) - 1);
}

/**
 * A tree too large to be made. Only the tiles over the leaves `near` hold hashes that are the roots of the tiles below
 * them; all others are made up.
 */
export function largeTree(near: readonly number[]): HashSource {
  const known = new Map<string, Uint8Array>();
  const make: HashSource = (level, position) => {
    const span = TILE_HASHES ** level;
    if (level === 0 || !near.some((leaf) => Math.floor(leaf / span) === position))
      return sha256(Buffer.from(`${level} ${position}`));
    return tileRoot(Array.from({ length: TILE_HASHES }, (_, at) => hashAt(level - 1, position * TILE_HASHES + at)));
  };
  const hashAt: HashSource = (level, position) => {
    const key = `${level}/${position}`;
    const hash = known.get(key) ?? make(level, position);
    known.set(key, hash);
    return hash;
  };
  return hashAt;
}
