import { expect, test } from 'vitest';
import type { Checkpoint } from '../../../../src/domain/log/checkpoint.ts';
import { ledgerId } from '../../../support/commands.ts';
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

const chain = longChain(1_500);

const nodeWith = nodesOver(chain);

test('the tail of a master whose rows lie apart is stored whole, however few rows a call adds to it', async () => {
  const data = emptyProofData();
  const node = await nodeWith(20, data);
  const origin = originIn(masterLog);
  const tiles = new MemoryTileStore(data.trees);
  for (let events = 20; events <= 120; events += 10) {
    await appendAll(node.store, chain.slice(events, events + 10));
    const { size } = await node.newest(masterLog);
    await node.checkpoints.inclusion(masterLog, 0, size, node.walk);
    expect(size - (await tiles.tile(origin, 0, 0)).length).toBeLessThanOrEqual(16);
  }
});

test('a large tree that was never made is made in the background, and meanwhile calls are told so', async () => {
  const data = emptyProofData();
  const node = new ProvingNode(data);
  const long = longChain(256 * 20 + 3);
  await appendAll(node.store, long);
  expect(await refusal(node.newest(ledgerLog))).toEqual(['unavailable', 'tree_building']);
  let found: Checkpoint | null = null;
  for (let tries = 0; tries < 100 && found === null; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    found = await node.newest(ledgerLog).catch(() => null);
  }
  expect(found?.size).toBe(long.length);
  expect(node.counts.tiles).toBe(20);
});

test('a call waits for the last tile while it is made in the background', async () => {
  const node = await nodeWith(200);
  await node.newest(ledgerLog);
  const more = chain.slice(200, 300);
  await node.store.append(await node.store.claim(ledgerId), more);
  node.checkpoints.committed(ledgerId, more);
  // Older than the edge, so it needs the tile.
  expect((await node.at(ledgerLog, 290)).size).toBe(290);
  expect(node.counts.tiles).toBe(1);
});
