import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Checkpoint } from '../../src/domain/log/checkpoint.ts';
import { ledgerKey, seqKey, tileKey } from '../../src/store/lmdb/keys.ts';
import { openTables, type Tables } from '../../src/store/lmdb/tables.ts';
import { formatTile, parseTile } from '../../src/store/lmdb/trees/stored-tile.ts';
import { type Master, newMaster } from '../support/parties.ts';
import { runHere } from '../support/program-here.ts';
import { expectUnavailable, makeProvenWorld, type ProvenWorld, proofReader } from '../support/proof-reader.ts';
import { runNode, suiteDir } from '../support/running-node.ts';

const root = suiteDir();
const serviceName = 'ledger.example/v1';
const run = (dataDir: string, ...args: string[]) =>
  runHere(args, { env: { DATA_DIR: dataDir, LOG_ORIGIN: serviceName } });

describe('damage in the data file of a stopped node', () => {
  const dataDir = join(root, 'damaged');
  const env = { LOG_ORIGIN: serviceName };
  let world: ProvenWorld;
  let sibling: Master;
  let kept: Checkpoint;
  let size: number;

  beforeAll(async () => {
    await using node = await runNode({ dataDir, env });
    // One full tile in each log, and the beginning of the next.
    world = await makeProvenWorld(node, 300);
    sibling = await newMaster(world.order);
    const reader = proofReader(node, world, serviceName);
    kept = await reader.checkpoint('ledger', 100);
    size = (await reader.checkpoint('ledger')).size;
    await reader.checkpoint('master');
    await reader.included([0, 255, 256, size - 1]);
  });

  async function inTables<T>(work: (tables: Tables) => Promise<T> | T): Promise<T> {
    const tables = openTables(dataDir);
    try {
      return await work(tables);
    } finally {
      await tables.root.close();
    }
  }
  const tilesIn = () => inTables(({ tiles }) => tiles.getCount());

  test('is not found where there is none', async () => {
    const { code, out } = await run(dataDir, 'scrub');
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/are readable\.\n\d+ tiles and 2 signed heads agree with the events\.\n$/),
    });
  });

  test('a byte of a row: the proofs that need it answer 503, all others go on, and the scrub names it', async () => {
    const { order } = world;
    const keyOf = (seq: number) => seqKey(ledgerKey(order.ledgerId), seq);
    const damage = (seq: number) =>
      inTables(async ({ events }) => {
        const row = events.get(keyOf(seq)) ?? '';
        await events.put(keyOf(seq), row.replace('"n":', '"m":'));
        return () => inTables((tables) => tables.events.put(keyOf(seq), row));
      });
    // Its hash is in a stored tile.
    const mendTiled = await damage(10);
    {
      await using node = await runNode({ dataDir, env });
      expect(await proofReader(node, world, serviceName).agreesWith(kept)).toBe(true);
    }
    await mendTiled();
    // In the last tile, which is not full: the newest tree cannot be computed, nor compared with what was signed.
    const seq = size - 20;
    const mend = await damage(seq);
    {
      await using node = await runNode({ dataDir, env });
      const { get } = proofReader(node, world, serviceName);
      const ledger = `/v1/ledgers/${order.ledgerId}`;
      const needing = ['checkpoint', 'checkpoint?size=100', 'proof/inclusion?seq=3'];
      expectUnavailable(await Promise.all(needing.map((path) => get(`${ledger}/${path}`))), 'broken_row');
      expect((await proofReader(node, { order, master: sibling }, serviceName).checkpoint('master')).size).toBe(1);
    }
    expect(await run(dataDir, 'scrub')).toMatchObject({
      code: 1,
      out: expect.stringContaining(`broken_row  ledger ${order.ledgerId} seq ${seq}: `),
    });
    await mend();
  });

  const owner = () => `${serviceName}/ledgers/${world.order.ledgerId}`;
  const changeTile = (level: number, change: (value: Buffer) => Uint8Array) =>
    inTables(({ tiles }) => {
      const key = tileKey(owner(), level, 0);
      return tiles.put(key, Buffer.from(change(Buffer.from(tiles.get(key) ?? []))));
    });
  const withByte = (value: Buffer, at: number) => value.with(at, (value[at] ?? 0) ^ 1);

  test('a byte of a tile, and a false hash with a right checksum, are named by the scrub and mended by --repair', async () => {
    const before = await tilesIn();
    await changeTile(0, (value) => withByte(value, 40));
    await changeTile(1, (value) => {
      const place = { owner: owner(), level: 1, position: 0 };
      return formatTile(place, Buffer.from(withByte(parseTile(place, value) ?? Buffer.alloc(32), 3)));
    });
    const found = await run(dataDir, 'scrub');
    expect(found).toMatchObject({ code: 1, err: '' });
    for (const level of [0, 1]) expect(found.out).toContain(`wrong_tile  ${owner()}, level ${level}, position 0: `);
    expect(await tilesIn()).toBe(before);
    expect(await run(dataDir, 'scrub', '--repair')).toMatchObject({
      code: 0,
      out: expect.stringContaining('Removed 2 tiles with wrong hashes'),
    });
    expect(await tilesIn()).toBe(before - 2);
    await using node = await runNode({ dataDir, env });
    const reader = proofReader(node, world, serviceName);
    await reader.included([0, 255]);
    expect(await reader.agreesWith(kept)).toBe(true);
    expect(await tilesIn()).toBe(before);
  });

  test('proofs stay right where a damaged tile is not repaired, and its reader makes it anew', async () => {
    await changeTile(0, (value) => withByte(value, 50));
    {
      await using node = await runNode({ dataDir, env });
      const reader = proofReader(node, world, serviceName);
      await reader.included([0, 290]);
      expect(await reader.agreesWith(kept)).toBe(true);
    }
    expect(await run(dataDir, 'scrub')).toMatchObject({ code: 0 });
  });
});
