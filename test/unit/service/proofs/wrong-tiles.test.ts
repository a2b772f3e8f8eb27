import { describe, expect, test, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { parseRow } from '../../../../src/domain/event/row.ts';
import type { Checkpoint } from '../../../../src/domain/log/checkpoint.ts';
import type { Log } from '../../../../src/service/proofs/proven-logs.ts';
import { ledgerId } from '../../../support/commands.ts';
import { nameOfPlace } from '../../../support/memory-store/trees.ts';
import {
  appendAll,
  damage,
  emptyProofData,
  laterClock,
  ledgerLog,
  longChain,
  masterLog,
  nodesOver,
  originIn,
  type ProofData,
  ProvingNode,
  refusal,
} from '../../../support/proofs-rig.ts';

const chain = longChain(1_500);

const nodeWith = nodesOver(chain);

/** A store whose log is signed at `size`, and has the tiles of all its events. */
async function signedAt(log: Log, size: number, events: number) {
  const data = emptyProofData();
  const node = await nodeWith(events, data);
  const signed = await node.at(log, size);
  await node.checkpoints.inclusion(log, 0, await node.checkpoints.newestSize(log, node.walk), node.walk);
  return { data, signed };
}

/** A node whose writes of tiles wait, where `waits` says so, until `goOn` resolves. `writing` resolves at the first. */
function waitingNode(data: ProofData, waits: (level: number, hashes: readonly Uint8Array[]) => boolean) {
  const [writing, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const node = new ProvingNode(data, {
    tiles: (tiles) => ({
      tile: tiles.tile.bind(tiles),
      putHashes: async (origin, level, from, hashes) => {
        if (waits(level, hashes)) {
          writing.resolve();
          await goOn.promise;
        }
        return tiles.putHashes(origin, level, from, hashes);
      },
    }),
  });
  return { node, writing, goOn };
}

describe('wrong tiles do not lead to a wrong checkpoint', () => {
  const level = 1;
  const place = { owner: originIn(ledgerLog), level, position: 0 };
  /** Data whose tile of level 1 has hashes of another tree, with the checkpoint of the right one. */
  async function withWrongTile() {
    const data = emptyProofData();
    const right = await (await nodeWith(1_500, data)).newest(ledgerLog);
    const { hashes } = data.trees;
    const [name, rightHashes] = [nameOfPlace(place), hashes.get(nameOfPlace(place))];
    damage(data, place);
    /** Resolves soon after the tile, the last one of the tree, was made anew. */
    const remade = async () => {
      await vi.waitFor(() => expect(hashes.get(name)).toEqual(rightHashes));
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    return { data, right, remade };
  }
  const whileBuilding = ['unavailable', 'tree_building'];
  /** Waits until the tree was made anew. Until then callers are told so, and nothing else. */
  async function onceBuilt(call: () => Promise<Checkpoint>): Promise<Checkpoint> {
    for (;;) {
      const asked = call();
      const found = await asked.catch(() => null);
      if (found !== null) return found;
      expect(await refusal(asked)).toEqual(whileBuilding);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  test('the tree is made anew', async () => {
    const { data, right } = await withWrongTile();
    const node = new ProvingNode(data);
    expect(await refusal(node.newest(ledgerLog))).toEqual(whileBuilding);
    expect(await onceBuilt(() => node.newest(ledgerLog))).toEqual(right);
  });

  test('a call that read them before the tree was made anew does not find the log behind', async () => {
    const { data, right, remade } = await withWrongTile();
    const [read, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let isFirst = true;
    const node = new ProvingNode(data, {
      tiles: (tiles) => ({
        putHashes: tiles.putHashes.bind(tiles),
        tile: async (owner, ofLevel, index) => {
          const hashes = await tiles.tile(owner, ofLevel, index);
          if (!isFirst || ofLevel !== level) return hashes;
          isFirst = false;
          read.resolve();
          await goOn.promise;
          return hashes;
        },
      }),
    });
    const slow = refusal(node.at(ledgerLog, 1_500));
    await read.promise;
    expect(await refusal(node.at(ledgerLog, 1_400))).toEqual(whileBuilding);
    await remade();
    goOn.resolve();
    expect(await slow).toEqual(whileBuilding);
    expect(node.behind.isEmpty).toBe(true);
    expect(await node.newest(ledgerLog)).toEqual(right);
  });

  test('a store that fails meanwhile does not make the log behind: 10 s later it is tried again', async () => {
    const { data, right } = await withWrongTile();
    const failed = Promise.withResolvers<void>();
    let isFirst = true;
    const time = { laterMs: 0 };
    const node = new ProvingNode(data, {
      clock: laterClock(time),
      tiles: (tiles) => ({
        tile: tiles.tile.bind(tiles),
        putHashes: async (...hashes) => {
          if (!isFirst) return tiles.putHashes(...hashes);
          isFirst = false;
          failed.resolve();
          throw new LedgerError('unavailable', 'The store does not answer.');
        },
      }),
    });
    expect(await refusal(node.newest(ledgerLog))).toEqual(whileBuilding);
    await failed.promise;
    expect(await refusal(node.newest(ledgerLog))).toEqual(whileBuilding);
    expect(node.counts.tiles).toBe(0);
    time.laterMs = 10_000;
    expect(await onceBuilt(() => node.newest(ledgerLog))).toEqual(right);
    expect(node.behind.isEmpty).toBe(true);
  });

  test('the tree is made anew for later events too, once they have wrong tiles', async () => {
    const data = emptyProofData();
    const owner = await nodeWith(1_200, data);
    await owner.newest(ledgerLog);
    const { hashes } = data.trees;
    const right = hashes.get(nameOfPlace(place));
    damage(data, place);
    const time = { laterMs: 0 };
    const node = new ProvingNode(data, { clock: laterClock(time) });
    expect(await refusal(node.newest(ledgerLog))).toEqual(whileBuilding);
    await vi.waitFor(() => expect(hashes.get(nameOfPlace(place))).toEqual(right));
    await new Promise((resolve) => setTimeout(resolve, 20));
    await appendAll(owner.store, chain.slice(1_200), [owner]);
    const newest = await owner.newest(ledgerLog);
    damage(data, { ...place, position: 4 });
    time.laterMs = 10_000;
    expect(await onceBuilt(() => node.newest(ledgerLog))).toEqual(newest);
    expect(node.behind.isEmpty).toBe(true);
  });

  test('the tree of a master is made anew with the rows behind its last full tile', async () => {
    const data = emptyProofData();
    const right = await (await nodeWith(1_500, data)).newest(masterLog);
    const at = { owner: originIn(masterLog), level: 0, position: 3 * 256 + 5 };
    expect(data.trees.hashes.has(nameOfPlace(at))).toBe(true);
    damage(data, at);
    const node = new ProvingNode(data);
    const asked = Array.from({ length: 20 }, () => onceBuilt(() => node.newest(masterLog)));
    for (const newest of await Promise.all(asked)) expect(newest).toEqual(right);
    expect(node.behind.isEmpty).toBe(true);
  });

  test.each([900, 1_500])(
    'a broken row behind what was signed does not keep the tree from being made anew up to it, if %i is asked for',
    async (asked) => {
      const data = emptyProofData();
      const right = await (await nodeWith(900, data)).newest(ledgerLog);
      const more = await nodeWith(1_500, { ...data, ledgers: emptyProofData().ledgers });
      await more.checkpoints.inclusion(ledgerLog, 0, 1_500, more.walk);
      for (const position of [0, 3]) damage(data, { ...place, position });
      const node = new ProvingNode(data);
      await appendAll(node.store, chain.slice(900));
      data.ledgers.ledgers.get(ledgerId)?.entries.set(1_100, { seq: 1_100, row: 'no row' });
      expect(await node.checkpoints.newestSize(ledgerLog, node.walk)).toBe(1_500);
      expect(await refusal(node.at(ledgerLog, asked))).toEqual(whileBuilding);
      expect(await onceBuilt(() => node.at(ledgerLog, 900))).toEqual(right);
      expect(await new ProvingNode(data).at(ledgerLog, 1_024)).toEqual(await (await nodeWith(1_024)).newest(ledgerLog));
    },
  );

  test('a broken row in the last tile of a master does not keep what was signed from being made anew', async () => {
    const { data, signed } = await signedAt(masterLog, 39, 120);
    damage(data, { owner: originIn(masterLog), level: 0, position: 7 });
    const { seq = -1 } =
      chain.find(({ row }) => parseRow(row).master?.id === masterLog.id && parseRow(row).master?.seq === 60) ?? {};
    data.ledgers.ledgers.get(ledgerId)?.entries.set(seq, { seq, row: 'no row' });
    const node = new ProvingNode(data);
    expect(await onceBuilt(() => node.at(masterLog, 39))).toEqual(signed);
  });

  test('nothing is signed while some tiles are right again and others not yet', async () => {
    const { data } = await signedAt(masterLog, 512, 1_500);
    const right = await (await nodeWith(1_500)).newest(masterLog);
    damage(data, { owner: originIn(masterLog), level: 1, position: 0 });
    damage(data, { owner: originIn(masterLog), level: 0, position: 3 * 256 + 5 });
    const { node, writing, goOn } = waitingNode(data, (level, hashes) => level === 0 && hashes.length < 256);
    expect(await refusal(node.newest(masterLog))).toEqual(whileBuilding);
    await writing.promise;
    expect(await refusal(node.newest(masterLog))).toEqual(whileBuilding);
    goOn.resolve();
    expect(await onceBuilt(() => node.newest(masterLog))).toEqual(right);
  });

  test('what a call reads of a wrong tail while the tree is made anew is not kept', async () => {
    const data = emptyProofData();
    const owner = await nodeWith(1_400, data);
    await owner.newest(masterLog);
    damage(data, { owner: originIn(masterLog), level: 0, position: 3 * 256 + 5 });
    const { node, writing, goOn } = waitingNode(data, () => true);
    expect(await refusal(node.newest(masterLog))).toEqual(whileBuilding);
    await writing.promise;
    // Not all of the tail is stored any more, so that it is kept in memory once it is read.
    await appendAll(node.store, chain.slice(1_400, 1_410));
    const right = await (await nodeWith(1_410)).newest(masterLog);
    await node.checkpoints.inclusion(masterLog, right.size - 1, right.size, node.walk);
    goOn.resolve();
    expect(await onceBuilt(() => node.newest(masterLog))).toEqual(right);
    expect(node.behind.isEmpty).toBe(true);
  });

  test.each([
    ['the rest of a tile of a master', masterLog, 120, 39, { level: 0, position: 7 }, { level: 0, position: 60 }],
    ['a later tile of a ledger', ledgerLog, 1_500, 512, { level: 1, position: 0 }, { level: 1, position: 4 }],
  ])('nor does %s, which is made anew too', async (_what, log, events, size, wrong, later) => {
    const { data } = await signedAt(log, size, events);
    const right = await (await nodeWith(events)).newest(log);
    for (const at of [wrong, later]) damage(data, { owner: originIn(log), ...at });
    const node = new ProvingNode(data);
    expect(await refusal(node.at(log, size))).toEqual(whileBuilding);
    expect(await onceBuilt(() => node.newest(log))).toEqual(right);
  });

  test('a broken row is said at each size that needs it, whatever other sizes are asked for', async () => {
    const data = emptyProofData();
    const node = await nodeWith(1_500, data);
    await node.newest(ledgerLog);
    damage(data, { owner: originIn(ledgerLog), level: 0, position: 0 });
    data.ledgers.ledgers.get(ledgerId)?.entries.set(10, { seq: 10, row: 'no row' });
    const restarted = new ProvingNode(data);
    await vi.waitFor(async () => {
      await restarted.at(ledgerLog, 1_280);
      expect(await refusal(restarted.at(ledgerLog, 100))).toEqual(['unavailable', 'broken_row']);
    });
  });
});

test('wrong tiles that a broken row keeps from being made anew are refused with that row', async () => {
  const data = emptyProofData();
  const node = await nodeWith(1_500, data);
  await node.newest(ledgerLog);
  const place = { owner: originIn(ledgerLog), level: 1, position: 0 };
  damage(data, place);
  const restarted = new ProvingNode(data);
  const read = restarted.store.read.bind(restarted.store);
  restarted.store.read = async (...given) =>
    (await read(...given)).map((entry) => (entry.seq === 100 ? { ...entry, row: 'no row' } : entry));
  expect(await refusal(restarted.newest(ledgerLog))).toEqual(['unavailable', 'tree_building']);
  await vi.waitFor(async () =>
    expect(await refusal(restarted.newest(ledgerLog))).toEqual(['unavailable', 'broken_row']),
  );
  expect(restarted.behind.isEmpty).toBe(true);
});
