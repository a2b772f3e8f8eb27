import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { decodeBase64 } from '../../src/domain/keys/base64.ts';
import { type Checkpoint, verifyCheckpoint } from '../../src/domain/log/checkpoint.ts';
import { logKey } from '../../src/domain/log/log-key.ts';
import { verifyProofFile } from '../../src/domain/log/proof-file.ts';
import { isConsistent } from '../../src/domain/log/tree-proof.ts';
import { ledgerKey, seqKey, tileKey } from '../../src/store/lmdb/keys.ts';
import { openTables, type Tables } from '../../src/store/lmdb/tables.ts';
import { formatTile, parseTile } from '../../src/store/lmdb/trees/stored-tile.ts';
import { grpcClient } from '../support/grpc-client.ts';
import { append, eventsOf, type Master, newMaster, newOrder, type Order } from '../support/parties.ts';
import { done, expectRefused, type Fields, type RestAnswer, rest } from '../support/parties-rest.ts';
import { sendAll, streamed } from '../support/parties-stream.ts';
import { runHere } from '../support/program-here.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';

const root = suiteDir();
const serviceName = 'ledger.example/v1';

interface World {
  readonly order: Order;
  readonly master: Master;
}

async function makeWorld(node: RunningTestNode, events: number): Promise<World> {
  const order = await newOrder(node.base, { keyed: false });
  const master = await newMaster(order);
  await appendMany(node, { order, master }, events);
  return { order, master };
}

async function appendMany(node: RunningTestNode, { order, master }: World, count: number): Promise<void> {
  const client = grpcClient(node.grpcAddress);
  const requests = Array.from({ length: count }, (_, n) => streamed(master, order.buyer, n, { n }));
  const outcomes = await sendAll(client, order.buyer, requests);
  client.close();
  expect(outcomes.filter(({ code }) => code !== null)).toEqual([]);
}

/** What a reader sees of a node's proofs. Each checkpoint and proof is verified. */
function readerOf(node: RunningTestNode, { order, master }: World, name = serviceName) {
  const ledger = `/v1/ledgers/${order.ledgerId}`;
  const origins = { ledger: `${name}/ledgers/${order.ledgerId}`, master: `${name}/masters/${master.uuid}` };
  const get = (path: string) => rest(node.base, 'GET', path, { headers: order.buyer.bearer });
  const keys = async () => {
    const anchor = await done(node.base, 'GET', '/.well-known/svc-authority');
    return anchor.rows('log.keys').map(({ public_key }) => logKey(String(public_key)) ?? expect.fail('no key'));
  };
  const paths = {
    ledger: `${ledger}/checkpoint`,
    master: `/v1/traceledger/master/${master.uuid}/checkpoint`,
    ledgerInclusion: `${ledger}/proof/inclusion?seq=1`,
    ledgerConsistency: `${ledger}/proof/consistency?from=2`,
    masterInclusion: `/v1/traceledger/master/${master.uuid}/proof/inclusion?master_seq=1`,
    masterConsistency: `/v1/traceledger/master/${master.uuid}/proof/consistency?from=2`,
  };
  return {
    get,
    refusals: (): Promise<RestAnswer[]> => Promise.all(Object.values(paths).map(get)),
    async checkpoint(kind: 'ledger' | 'master', size?: number): Promise<Checkpoint> {
      const { body } = await done(node.base, 'GET', `${paths[kind]}${size === undefined ? '' : `?size=${size}`}`, {
        headers: order.buyer.bearer,
      });
      return verifyCheckpoint(String(body.checkpoint), origins[kind], await keys());
    },
    /** Verifies that events of the ledger are in its newest tree. */
    async included(seqs: readonly number[]): Promise<void> {
      const events = await eventsOf(node.base, order.buyer, order.ledgerId);
      for (const seq of seqs) {
        const { body } = await done(node.base, 'GET', `${ledger}/proof/inclusion?seq=${seq}`, {
          headers: order.buyer.bearer,
        });
        const record = Buffer.from(String(events[seq]?.hash), 'hex');
        verifyProofFile(String(body.proof), { index: seq, record, origin: origins.ledger, keys: await keys() });
      }
    },
    /** Whether the log still contains what the reader has kept. */
    async agreesWith(kept: Checkpoint): Promise<boolean> {
      const { body } = await done(node.base, 'GET', `${ledger}/proof/consistency?from=${kept.size}`, {
        headers: order.buyer.bearer,
      });
      const newer = verifyCheckpoint(String(body.checkpoint_to), origins.ledger, await keys());
      const hashes = (body.hashes as string[]).map((hash) => decodeBase64(hash, 32) ?? Buffer.alloc(0));
      const sizes = { oldSize: kept.size, newSize: newer.size };
      return isConsistent({ ...sizes, oldRoot: kept.root, newRoot: newer.root, hashes });
    },
  };
}

const run = (dataDir: string, ...args: string[]) =>
  runHere(args, { env: { DATA_DIR: dataDir, LOG_ORIGIN: serviceName } });

function expectUnavailable(answers: readonly RestAnswer[], reason: string): void {
  for (const answer of answers) {
    expectRefused(answer, 503, 'unavailable');
    expect((answer.body.error as Fields).details).toMatchObject({ reason });
  }
}

describe('damage in the data file of a stopped node', () => {
  const dataDir = join(root, 'damaged');
  const env = { LOG_ORIGIN: serviceName };
  let world: World;
  let sibling: Master;
  let kept: Checkpoint;
  let size: number;

  beforeAll(async () => {
    await using node = await runNode({ dataDir, env });
    // One full tile in each log, and the beginning of the next.
    world = await makeWorld(node, 300);
    sibling = await newMaster(world.order);
    const reader = readerOf(node, world);
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
      expect(await readerOf(node, world).agreesWith(kept)).toBe(true);
    }
    await mendTiled();
    // In the last tile, which is not full: the newest tree cannot be computed, nor compared with what was signed.
    const seq = size - 20;
    const mend = await damage(seq);
    {
      await using node = await runNode({ dataDir, env });
      const { get } = readerOf(node, world);
      const ledger = `/v1/ledgers/${order.ledgerId}`;
      const needing = ['checkpoint', 'checkpoint?size=100', 'proof/inclusion?seq=3'];
      expectUnavailable(await Promise.all(needing.map((path) => get(`${ledger}/${path}`))), 'broken_row');
      expect((await readerOf(node, { order, master: sibling }).checkpoint('master')).size).toBe(1);
    }
    expect(await run(dataDir, 'scrub')).toMatchObject({
      code: 1,
      out: expect.stringContaining(`broken_row  ledger ${order.ledgerId} seq ${seq}: `),
    });
    await mend();
    await using node = await runNode({ dataDir, env });
    expect(await readerOf(node, world).agreesWith(kept)).toBe(true);
  });

  test.each([
    ['a changed byte', (value: Buffer) => value.with(40, (value[40] ?? 0) ^ 1)],
    [
      'a false hash under a right checksum',
      (value: Buffer, owner: string) => {
        const place = { owner, level: 0, position: 0 };
        const hashes = parseTile(place, value) ?? Buffer.alloc(0);
        return formatTile(place, Buffer.from(hashes.with(40, (hashes[40] ?? 0) ^ 1)));
      },
    ],
  ])('%s of a tile is named by the scrub, and the repair removes the tile', async (_what, change) => {
    const owner = `${serviceName}/ledgers/${world.order.ledgerId}`;
    const key = tileKey(owner, 0, 0);
    const damage = () =>
      inTables(({ tiles }) => tiles.put(key, Buffer.from(change(Buffer.from(tiles.get(key) ?? []), owner))));
    const before = await tilesIn();
    await damage();
    expect(await run(dataDir, 'scrub')).toMatchObject({
      code: 1,
      out: expect.stringMatching(new RegExp(`^wrong_tile  ${owner}, level 0, position \\d: .*\n`)),
    });
    expect(await tilesIn()).toBe(before);
    expect(await run(dataDir, 'scrub', '--repair')).toMatchObject({
      code: 0,
      out: expect.stringContaining('1 tiles with wrong hashes were removed'),
    });
    expect(await tilesIn()).toBe(before - 1);
    await using node = await runNode({ dataDir, env });
    const reader = readerOf(node, world);
    await reader.included([0, 1, 2, 255]);
    expect(await reader.agreesWith(kept)).toBe(true);
    expect(await tilesIn()).toBe(before);
  });

  test('a byte of a tile that is not repaired: proofs stay right, and the reader of the tile makes it anew', async () => {
    const owner = `${serviceName}/ledgers/${world.order.ledgerId}`;
    await inTables(({ tiles }) =>
      tiles.put(tileKey(owner, 0, 0), Buffer.from(tiles.get(tileKey(owner, 0, 0))?.with(50, 0) ?? [])),
    );
    {
      await using node = await runNode({ dataDir, env });
      const reader = readerOf(node, world);
      await reader.included([0, 1, 2, 255, 290]);
      expect(await reader.agreesWith(kept)).toBe(true);
    }
    expect(await run(dataDir, 'scrub')).toMatchObject({ code: 0 });
  });
});

describe('a backup in the place of the data', () => {
  const dataDir = join(root, 'restored');
  const env = { LOG_ORIGIN: serviceName };
  const [copy, image] = [join(root, 'backup'), join(root, 'image')];
  let world: World;
  let kept: Checkpoint;
  const putInPlace = (from: string) => {
    rmSync(dataDir, { recursive: true, force: true });
    cpSync(from, dataDir, { recursive: true });
  };

  beforeAll(async () => {
    {
      await using node = await runNode({ dataDir, env });
      world = await makeWorld(node, 40);
      await readerOf(node, world).checkpoint('ledger');
      expect(await run(dataDir, 'backup', copy)).toMatchObject({ code: 0 });
    }
    cpSync(dataDir, image, { recursive: true });
    await using node = await runNode({ dataDir, env });
    await appendMany(node, world, 20);
    kept = await readerOf(node, world).checkpoint('ledger');
    await readerOf(node, world).checkpoint('master');
  });

  test('signs nothing, also after a restart, until `log new-origin` gives it another name', async () => {
    putInPlace(copy);
    for (let start = 1; start <= 2; start += 1) {
      await using node = await runNode({ dataDir, env });
      const reader = readerOf(node, world);
      expectUnavailable(await reader.refusals(), 'log_behind');
      expect((await append({ ...world.master, base: node.base }, world.order.buyer, 'NOTED', { start })).status).toBe(
        200,
      );
      expect((await done(node.base, 'GET', '/health')).body).toMatchObject({
        db: expect.arrayContaining([{ name: 'log', status: 'behind' }]),
      });
    }
    const moved = `${serviceName}-2026-11-26`;
    expect(await run(dataDir, 'log', 'new-origin', moved)).toMatchObject({ code: 0 });
    expect(await run(dataDir, 'log', 'new-origin', serviceName)).toMatchObject({ code: 1 });
    await using node = await runNode({ dataDir, env: { LOG_ORIGIN: moved } });
    const reader = readerOf(node, world, moved);
    expect((await reader.checkpoint('ledger')).size).toBeLessThan(kept.size);
    await reader.checkpoint('master');
    await reader.included([0, 40]);
  });

  test('goes on after `log keep`, if nothing was signed since', async () => {
    putInPlace(copy);
    expect(await run(dataDir, 'log', 'keep')).toMatchObject({ code: 0 });
    await using node = await runNode({ dataDir, env });
    const reader = readerOf(node, world);
    const first = await reader.checkpoint('ledger');
    await appendMany(node, world, 10);
    expect(await reader.agreesWith(first)).toBe(true);
  });

  test('is not noticed if it was made by other means, but by the reader who kept a checkpoint', async () => {
    putInPlace(image);
    await using node = await runNode({ dataDir, env });
    const reader = readerOf(node, world);
    expect((await reader.checkpoint('ledger')).size).toBeLessThan(kept.size);
    await appendMany(node, world, 21);
    // Two signed checkpoints of one log that contradict each other: the proof against the operator.
    expect((await reader.checkpoint('ledger')).size).toBeGreaterThan(kept.size);
    expect(await reader.agreesWith(kept)).toBe(false);
  });
});
