import { describe, expect, test } from 'vitest';
import { FollowedTree } from '../../../../src/client/follow/followed-tree.ts';
import type { Event } from '../../../../src/client/index.ts';
import { toHex } from '../../../../src/domain/keys/hex.ts';
import { CompactRange } from '../../../../src/domain/log/compact-range.ts';
import { leafHash } from '../../../../src/domain/log/tree.ts';
import { logVectors, ofHex } from '../../../support/log-vectors.ts';
import { chain, checkpointOf, ofMasterA } from '../../../support/vector-chain.ts';

const sizes = logVectors.ledger.checkpoints.map(({ size }) => size);
const otherRoot = (size: number) => ({ ...checkpointOf(size), root: new Uint8Array(32) });
function treeOf(count: number, first = 0): FollowedTree {
  const tree = new FollowedTree('ledger');
  if (first > 0) tree.beginBehind(chain[first - 1] as Event);
  for (const event of chain.slice(first, count)) expect(tree.take(event)).toBe(null);
  return tree;
}

test('each checkpoint is compared, whether it covers less, as much, or events to come', () => {
  for (const size of sizes)
    for (const count of [1, 4, 5, 8, 9]) {
      const honest = treeOf(count);
      expect(honest.compare(checkpointOf(size))).toBe(null);
      for (const event of chain.slice(count)) expect(honest.take(event)).toBe(null);
      const lied = treeOf(count);
      const note = otherRoot(size);
      const found = [lied.compare(note), ...chain.slice(count).map((event) => lied.take(event))];
      expect(found.filter((one) => one !== null)).toEqual([note]);
    }
});

test('of two checkpoints that cover events to come the smaller one is compared', () => {
  const [smaller, larger] = [otherRoot(5), otherRoot(8)];
  for (const notes of [
    [smaller, larger],
    [larger, smaller],
  ]) {
    const tree = treeOf(4);
    for (const note of notes) expect(tree.compare(note)).toBe(null);
    expect(tree.take(chain[4] as Event)).toBe(smaller);
  }
});

test('a checkpoint that covers less than was compared already is passed over', () => {
  const tree = treeOf(9);
  expect(tree.compare(checkpointOf(8))).toBe(null);
  expect(tree.compare(otherRoot(5))).toBe(null);
  expect(tree.compare(otherRoot(9))).not.toBe(null);
});

test('behind events that contradict a checkpoint nothing is compared: one contradiction is told once', () => {
  const tree = treeOf(8);
  expect(tree.compare(otherRoot(5))).not.toBe(null);
  for (const size of [5, 8]) expect(tree.compare(otherRoot(size))).toBe(null);
  const before = treeOf(4);
  expect(before.compare(otherRoot(5))).toBe(null);
  expect(before.take(chain[4] as Event)).not.toBe(null);
  expect(before.compare(otherRoot(5))).toBe(null);
});

/** The hashes of the proof that an event is the last one of the tree up to it. */
function proofOf(events: readonly Pick<Event, 'hash'>[]): Uint8Array[] {
  const range = new CompactRange();
  for (const { hash } of events.slice(0, -1)) range.append(leafHash(ofHex(hash)));
  return range.hashes().toReversed();
}

test('from the middle nothing is compared until the event before is proved', () => {
  for (const first of [1, 3, 6]) {
    const tree = treeOf(8, first);
    expect(tree.compare(otherRoot(8))).toBe(null);
    const before = chain[first - 1] as Event;
    const record = { index: first - 1, record: ofHex(before.hash) };
    expect(tree.toBeProved).toEqual(record);
    tree.learn(record, proofOf(chain.slice(0, first)));
    expect(tree.compare(otherRoot(8))).toBe(null);
    tree.learn(tree.toBeProved ?? record, proofOf(chain.slice(0, first)));
    expect(tree.toBeProved).toBe(null);
    expect(tree.compare(checkpointOf(8))).toBe(null);
    expect(tree.compare(otherRoot(8))).not.toBe(null);
  }
});

test('of a master its own places and content hashes count', () => {
  const [log] = logVectors.masters;
  const tree = new FollowedTree('master');
  for (const event of ofMasterA) tree.take(event);
  expect(tree.compare(checkpointOf(4, log))).toBe(null);
  expect(tree.compare({ ...checkpointOf(4, log), root: new Uint8Array(32) })).not.toBe(null);
});

test.each([
  ['missing', chain.toSpliced(3, 1)],
  ['malformed', chain.with(3, { ...(chain[3] as Event), hash: 'none' })],
])('behind an event that is %s nothing is compared', (_, events) => {
  const tree = new FollowedTree('ledger');
  for (const event of events) tree.take(event);
  expect(tree.compare(otherRoot(8))).toBe(null);
  expect(tree.toBeProved).toBe(null);
});

describe('of many events behind the last comparison', () => {
  const hashes = Array.from({ length: 10_000 }, (_, seq) => toHex(leafHash(ofHex(String(seq).padStart(64, '0')))));
  const events = hashes.map((hash, seq) => ({ ...(chain[0] as Event), seq, hash }));
  const range = new CompactRange();
  for (const hash of hashes) range.append(leafHash(ofHex(hash)));
  const last = { origin: '', size: 10_000, root: range.root() };

  test('the oldest are forgotten, and later checkpoints compared still', () => {
    const tree = new FollowedTree('ledger');
    for (const event of events) tree.take(event);
    expect(tree.compare(otherRoot(4))).toBe(null);
    expect(tree.compare(last)).toBe(null);
    expect(tree.compare({ ...last, root: new Uint8Array(32) })).not.toBe(null);
  });

  test('from the middle, one of the later ones is to be proved', () => {
    const tree = new FollowedTree('ledger');
    tree.beginBehind(events[7] as Event);
    for (const event of events.slice(8)) tree.take(event);
    const before = tree.toBeProved;
    expect(before?.index).toBe(7 + 8_192);
    if (before !== null) tree.learn(before, proofOf(events.slice(0, before.index + 1)));
    expect(tree.compare(last)).toBe(null);
    expect(tree.compare({ ...last, root: new Uint8Array(32) })).not.toBe(null);
  });
});
