import { describe, expect, test, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { names } from '../../../../src/domain/event/projection.ts';
import { parseRow } from '../../../../src/domain/event/row.ts';
import { type Checkpoint, verifyCheckpoint } from '../../../../src/domain/log/checkpoint.ts';
import { leafHash } from '../../../../src/domain/log/tree.ts';
import { isConsistent, isIncluded } from '../../../../src/domain/log/tree-proof.ts';
import type { Log } from '../../../../src/service/proofs/proven-logs.ts';
import type { LedgerEntry } from '../../../../src/store/ledger-store.ts';
import { pageCharsMax } from '../../../../src/store/pages.ts';
import type { SignedHead, SignedHeads } from '../../../../src/store/signed-heads.ts';
import { ledgerId, masterId } from '../../../support/commands.ts';
import { vectorKey } from '../../../support/log-keys.ts';
import { RecursiveTree } from '../../../support/log-trees.ts';
import { MemoryTileStore } from '../../../support/memory-store/trees.ts';
import {
  appendAll,
  emptyProofData,
  ledgerLog,
  longChain,
  masterLog,
  nodesOver,
  originIn,
  ProvingNode,
  refusal,
} from '../../../support/proofs-rig.ts';
import { countingBytes } from '../../../support/world.ts';

const chain = longChain(1_500);
const leavesOf = (log: Log, entries: readonly LedgerEntry[]): Uint8Array[] =>
  entries.flatMap(({ row }) => {
    const { hash, contentHash, master } = parseRow(row);
    if (log.kind === 'ledger') return [leafHash(Buffer.from(hash, 'hex'))];
    return master?.id === log.id ? [leafHash(Buffer.from(contentHash, 'hex'))] : [];
  });

const nodeWith = nodesOver(chain);

async function consistent(node: ProvingNode, log: Log, old: Checkpoint, newer: Checkpoint): Promise<boolean> {
  const hashes = await node.checkpoints.consistency(log, old.size, newer.size, node.walk);
  return isConsistent({ oldSize: old.size, oldRoot: old.root, newSize: newer.size, newRoot: newer.root, hashes });
}

describe.each([ledgerLog, masterLog])('the $kind log', (log) => {
  const leaves = leavesOf(log, chain);
  const tree = new RecursiveTree(leaves);

  test('has a checkpoint at each size, with the root of RFC 6962', async () => {
    const node = await nodeWith(chain.length);
    expect(await node.checkpoints.newestSize(log, node.walk)).toBe(leaves.length);
    for (const size of [leaves.length, 1, 2, 255, 256, 257, 511, 512, 700, leaves.length - 1]) {
      const { root } = await node.at(log, size);
      expect([size, Buffer.from(root).toString('hex')]).toEqual([
        size,
        Buffer.from(tree.hash({ from: 0, to: size })).toString('hex'),
      ]);
    }
    expect(await node.checkpoints.checkpoint(log, leaves.length + 1, node.walk)).toBeNull();
  });

  test('proves events at their own places and in the newest tree', async () => {
    const node = await nodeWith(chain.length);
    const newest = await node.newest(log);
    const last = leaves.length - 1;
    for (const index of [0, 1, 2, 3, 127, 200, 254, 255, 256, 257, 510, 511, 512, 513, 640, last - 1, last]) {
      for (const size of [index + 1, leaves.length]) {
        const hashes = await node.checkpoints.inclusion(log, index, size, node.walk);
        const root = size === newest.size ? newest.root : tree.hash({ from: 0, to: size });
        const claim = { leafHash: leaves[index] ?? new Uint8Array(), index, size, root, hashes };
        expect([index, size, isIncluded(claim)]).toEqual([index, size, true]);
      }
    }
  });

  test('grows under a node that learns of commits, and under one that does not, with the same checkpoints', async () => {
    const data = emptyProofData();
    const [owner, other] = [new ProvingNode(data), new ProvingNode(data)];
    const notes: Checkpoint[] = [];
    for (let at = 0; at < chain.length; at += 50) {
      await appendAll(owner.store, chain.slice(at, at + 50), [owner], 7);
      const signed = [await owner.newest(log), await other.newest(log)];
      expect(signed[0]).toEqual(signed[1]);
      expect(signed[0]?.size).toBe(leavesOf(log, chain.slice(0, at + 50)).length);
      notes.push(...signed);
    }
    const last = await (await nodeWith(0, data)).newest(log);
    for (const note of notes) expect(await consistent(other, log, note, last)).toBe(true);
  });
});

test.each([ledgerLog, masterLog])(
  'proofs of the $kind log read each row behind its last full tile once',
  async (log) => {
    const node = await nodeWith(600);
    const { size } = await node.newest(log);
    await node.checkpoints.inclusion(log, 0, size, node.walk);
    const reads = [vi.spyOn(node.store, 'read'), vi.spyOn(node.store, 'readScope')];
    const calls = () => reads.flatMap(({ mock }): unknown[][] => mock.calls);
    for (const index of [0, 300, size - 1]) await node.checkpoints.inclusion(log, index, size, node.walk);
    await node.checkpoints.consistency(log, 200, size, node.walk);
    // Of an older tree, too, whose last tile is full by now.
    await node.checkpoints.inclusion(log, 7, 200, node.walk);
    expect(calls()).toEqual([]);
    await appendAll(node.store, chain.slice(600, 610), [node]);
    const newest = await node.newest(log);
    await node.checkpoints.inclusion(log, 0, newest.size, node.walk);
    // The new rows, and the one before them for the link.
    const [from, limit] = [599, 1 + newest.size - size];
    const page =
      log.kind === 'ledger'
        ? [from, limit, pageCharsMax]
        : [names.masterEvents(log.id), { from, limit, charsMax: pageCharsMax }];
    expect(calls().at(-1)).toEqual([ledgerId, ...page]);
  },
);

test('callers that ask for the newest checkpoint at once share one read of the rows that are new', async () => {
  const data = emptyProofData();
  const [owner, other] = [new ProvingNode(data), new ProvingNode(data)];
  await appendAll(owner.store, chain.slice(0, 600));
  await other.newest(ledgerLog);
  await appendAll(owner.store, chain.slice(600, 700));
  const reads = vi.spyOn(other.store, 'read');
  const tiles = vi.spyOn(MemoryTileStore.prototype, 'tile');
  const found = await Promise.all(Array.from({ length: 50 }, () => other.newest(ledgerLog)));
  expect(new Set(found.map(({ size }) => size))).toEqual(new Set([700]));
  expect([reads.mock.calls.map(([, from, limit]) => [from, limit]), tiles.mock.calls]).toEqual([[[599, 101]], []]);
  tiles.mockRestore();
});

test('beside commits that do not end, the newest checkpoint comes from the end of the tree that the node keeps', async () => {
  const node = await nodeWith(600);
  let at = 600;
  // A commit between any two steps of the calls.
  const read = node.store.read.bind(node.store);
  vi.spyOn(node.store, 'read').mockImplementation(async (...args) => {
    await appendAll(node.store, chain.slice(at, at + 5), [node]);
    at += 5;
    return read(...args);
  });
  await node.newest(ledgerLog);
  const tiles = vi.spyOn(MemoryTileStore.prototype, 'tile');
  for (let n = 0; n < 5; n += 1) {
    await appendAll(node.store, chain.slice(at, at + 5), [node]);
    at += 5;
    const asked = at - 4;
    const { checkpoint } = (await node.checkpoints.checkpoint(ledgerLog, asked, node.walk, true)) ?? {};
    const { size, root } = verifyCheckpoint(checkpoint ?? '', originIn(ledgerLog), [vectorKey]);
    expect(size).toBeGreaterThanOrEqual(asked);
    const tree = new RecursiveTree(leavesOf(ledgerLog, chain.slice(0, size)));
    expect(Buffer.from(root)).toEqual(Buffer.from(tree.hash({ from: 0, to: size })));
  }
  expect(tiles.mock.calls).toEqual([]);
  tiles.mockRestore();
});

test('an event that was changed or lost makes no proof that needs it, and all others go on', async () => {
  const data = emptyProofData();
  const node = await nodeWith(600, data);
  const entries = data.ledgers.ledgers.get(ledgerId)?.entries;
  const row = entries?.get(300)?.row ?? '';
  entries?.set(300, { seq: 300, row: row.replace('"n":300', '"n":301') });
  expect(await refusal(node.at(ledgerLog, 600))).toEqual(['unavailable', 'broken_row']);
  expect((await node.at(ledgerLog, 256)).size).toBe(256);
  entries?.delete(300);
  expect(await refusal(node.at(ledgerLog, 600))).toEqual(['unavailable', 'broken_row']);
  entries?.set(300, { seq: 300, row });
  expect((await node.at(ledgerLog, 600)).size).toBe(600);
});

test('an event whose hash and own links were all made anew by a forger is refused by the link behind it', async () => {
  const data = emptyProofData();
  const node = await nodeWith(300, data);
  const entries = data.ledgers.ledgers.get(ledgerId)?.entries;
  const other = longChain(301).map(({ seq, row }) => ({ seq, row }));
  entries?.set(200, other[201] ?? { seq: 0, row: '' });
  expect(await refusal(node.at(ledgerLog, 300))).toEqual(['unavailable', 'broken_row']);
});

describe('a store that lacks events that were signed', () => {
  test('signs nothing for the ledger and its masters, and for others as before', async () => {
    const data = emptyProofData();
    const node = await nodeWith(600, data);
    const old = await node.at(ledgerLog, 300);
    await node.newest(ledgerLog);
    await node.newest(masterLog);
    // The ledger's events are those of an older copy, its signed heads are not.
    const restored = { ...data, ledgers: emptyProofData().ledgers };
    const after = await nodeWith(400, restored);
    for (const log of [ledgerLog, masterLog]) {
      expect(await refusal(after.at(log, 10))).toEqual(['unavailable', 'log_behind']);
      expect(await refusal(after.at(log, 10))).toEqual(['unavailable', 'log_behind']);
      expect(after.behind.has(log.kind, originIn(log))).toBe(true);
    }
    await appendAll(after.store, chain.slice(400, 600));
    const mended = new ProvingNode(restored);
    expect(await consistent(mended, ledgerLog, old, await mended.newest(ledgerLog))).toBe(true);
  });

  test('gives calls that run while the log is found to be behind its newest size, and no other refusal', async () => {
    const data = emptyProofData();
    await (await nodeWith(600, data)).newest(ledgerLog);
    const after = await nodeWith(400, { ...data, ledgers: emptyProofData().ledgers });
    const sizes: Promise<number>[] = [];
    const refusals = [refusal(after.at(ledgerLog, 10))];
    // A call begins in each step of the other one.
    for (let step = 0; step < 100; step += 1) {
      sizes.push(after.checkpoints.newestSize(ledgerLog, after.walk));
      refusals.push(refusal(after.at(ledgerLog, 10)));
      await Promise.resolve();
    }
    for (const refused of await Promise.all(refusals)) expect(refused).toEqual(['unavailable', 'log_behind']);
    expect(new Set(await Promise.all(sizes))).toEqual(new Set([400]));
  });

  test('signs nothing either once other events have taken their places', async () => {
    const data = emptyProofData();
    const node = await nodeWith(600, data);
    await node.newest(ledgerLog);
    const other = longChain(700);
    const restored = { ...data, ledgers: emptyProofData().ledgers };
    const after = new ProvingNode(restored);
    await appendAll(after.store, other);
    // The first refusals say that the tree is made anew from the events.
    const reasons = new Set<unknown>();
    for (let tries = 0; tries < 20 && !reasons.has('log_behind'); tries += 1) {
      reasons.add(((await refusal(after.at(ledgerLog, 650))) as unknown[])[1]);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect([...reasons]).toEqual(['tree_building', 'log_behind']);
  });
});

test('once events below the signed head are others, every newer checkpoint still agrees with the signed one', async () => {
  const data = emptyProofData();
  const old = await (await nodeWith(600, data)).at(ledgerLog, 512);
  // The events from 500 on are lost and the ledger goes on. The tile of the events up to 512 is that of before.
  const restored = { ...data, ledgers: emptyProofData().ledgers };
  const after = new ProvingNode(restored);
  await appendAll(after.store, longChain(700, countingBytes(), 500));
  await after.at(ledgerLog, 480);
  for (let n = 0; n < 3; n += 1) {
    const newest = await after.newest(ledgerLog).catch(() => null);
    if (newest !== null) expect(await consistent(after, ledgerLog, old, newest)).toBe(true);
  }
});

test('a copy of a store signs nothing', async () => {
  const data = emptyProofData();
  await nodeWith(10, data);
  const copy = new ProvingNode(data, { isCopy: true });
  expect(await refusal(copy.at(ledgerLog, 5))).toEqual(['unavailable', 'log_behind']);
});

test('no checkpoint leaves before its signed head is durable', async () => {
  const durable = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const data = emptyProofData();
  const node = new ProvingNode(data, {
    heads: (heads) => ({
      get: (origin) => heads.get(origin),
      raise: async (origin, size, root) => {
        asked.resolve();
        await durable.promise;
        await heads.raise(origin, size, root);
      },
    }),
  });
  await appendAll(node.store, chain.slice(0, 100));
  let isAnswered = false;
  const call = node.at(ledgerLog, 30).finally(() => {
    isAnswered = true;
  });
  await asked.promise;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([isAnswered, node.counts.signed]).toEqual([false, 0]);
  durable.resolve();
  expect((await call).size).toBe(30);
  expect((await node.heads.get(originIn(ledgerLog)))?.size).toBe(30);
});

test('a raise that fails refuses its checkpoint, and the next call reads the signed head again', async () => {
  let fails = 1;
  const reads: string[] = [];
  const data = emptyProofData();
  const node = new ProvingNode(data, {
    heads: (heads) => ({
      get: (origin) => {
        reads.push(origin);
        return heads.get(origin);
      },
      raise: async (origin, size, root) => {
        if (fails-- > 0) throw new LedgerError('unavailable', 'no');
        await heads.raise(origin, size, root);
      },
    }),
  });
  await appendAll(node.store, chain.slice(0, 100));
  expect(await refusal(node.at(ledgerLog, 50))).toEqual(['unavailable', undefined]);
  expect((await node.at(ledgerLog, 60)).size).toBe(60);
  expect(reads).toHaveLength(2);
});

/** A node over 100 events whose signed heads are read and raised as the test says. Notes the sizes that are raised. */
async function nodeWithHeads(changes: {
  readonly get?: (heads: SignedHeads, origin: string) => Promise<SignedHead | null>;
  readonly raise: (size: number) => Promise<void>;
}) {
  const raised: number[] = [];
  const node = new ProvingNode(emptyProofData(), {
    heads: (heads) => ({
      get: (origin) => changes.get?.(heads, origin) ?? heads.get(origin),
      raise: async (origin, size, root) => {
        raised.push(size);
        await changes.raise(size);
        await heads.raise(origin, size, root);
      },
    }),
  });
  await appendAll(node.store, chain.slice(0, 100));
  return { node, raised };
}

test.each([
  ['not yet', false],
  ['already', true],
])(
  'a call that agreed on a head before the raise of another call failed is refused, the signed head read again %s',
  async (_, isReadAgain) => {
    const fails = Promise.withResolvers<void>();
    const { node, raised } = await nodeWithHeads({
      raise: (size) => (size === 60 ? fails.promise : Promise.resolve()),
    });
    await node.at(ledgerLog, 50);
    await node.checkpoints.newestSize(ledgerLog, node.walk);
    const failing = refusal(node.at(ledgerLog, 60));
    await vi.waitFor(() => expect(raised).toEqual([50, 60]));
    const [reading, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const read = node.store.read.bind(node.store);
    const waits = vi.spyOn(node.store, 'read').mockImplementation(async (...args) => {
      reading.resolve();
      await goesOn.promise;
      return read(...args);
    });
    const late = refusal(node.at(ledgerLog, 70));
    await reading.promise;
    waits.mockRestore();
    fails.reject(new LedgerError('unavailable', 'no'));
    expect(await failing).toEqual(['unavailable', undefined]);
    if (isReadAgain) await node.at(ledgerLog, 80);
    goesOn.resolve();
    expect(await late).toEqual(['unavailable', undefined]);
    expect(raised).toEqual(isReadAgain ? [50, 60, 80] : [50, 60]);
    expect((await node.at(ledgerLog, 90)).size).toBe(90);
  },
);

test('a signed head that was read before a raise failed is not kept', async () => {
  const old = Promise.withResolvers<SignedHead | null>();
  let reads = 0;
  const { node, raised } = await nodeWithHeads({
    get: (heads, origin) => (++reads === 2 ? old.promise : heads.get(origin)),
    raise: async () => {
      if (raised.length === 1) throw new LedgerError('unavailable', 'no');
    },
  });
  const failing = refusal(node.at(ledgerLog, 60));
  const late = refusal(node.at(ledgerLog, 70));
  expect(await failing).toEqual(['unavailable', undefined]);
  old.resolve(null);
  expect(await late).toEqual(['unavailable', undefined]);
  expect([raised, reads]).toEqual([[60], 2]);
  expect((await node.at(ledgerLog, 80)).size).toBe(80);
  expect(reads).toBe(3);
});

test('a master has no more events than the certain part of its ledger holds', async () => {
  const data = emptyProofData();
  const node = await nodeWith(3, data);
  expect(await node.checkpoints.newestSize(masterLog, node.walk)).toBe(1);
  expect(await node.checkpoints.newestSize({ ...masterLog, id: masterId.replace('aa', 'ac') }, node.walk)).toBe(0);
});
