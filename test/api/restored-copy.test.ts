import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Checkpoint } from '../../src/domain/log/checkpoint.ts';
import { append } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runHere } from '../support/program-here.ts';
import {
  appendMany,
  expectUnavailable,
  makeProvenWorld,
  type ProvenWorld,
  proofReader,
} from '../support/proof-reader.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';

const root = suiteDir();
const origin = 'ledger.example/v1';

/** A backup of the node's data, as a data directory. */
async function backupOf(dataDir: string, copy: string): Promise<string> {
  expect(await runHere(['backup', copy], { env: { DATA_DIR: dataDir } })).toMatchObject({ code: 0 });
  return copy;
}

const logOf = async (node: RunningTestNode) => (await done(node.base, 'GET', '/.well-known/svc-authority')).body.log;
const healthOf = async (node: RunningTestNode) => (await done(node.base, 'GET', '/health')).body;
const metricsOf = async (node: RunningTestNode) => (await fetch(`${node.opsBase}/metrics`)).text();

describe('a backup in the place of the data', () => {
  const dataDir = join(root, 'original');
  const env = { LOG_ORIGIN: origin };
  const [copy, image] = [join(root, 'backup'), join(root, 'image')];
  let world: ProvenWorld;
  let kept: Checkpoint;
  const putInPlace = (from: string) => {
    rmSync(dataDir, { recursive: true, force: true });
    cpSync(from, dataDir, { recursive: true });
  };
  const run = (...args: string[]) => runHere(args, { env: { ...env, DATA_DIR: dataDir } });

  beforeAll(async () => {
    {
      await using node = await runNode({ dataDir, env });
      world = await makeProvenWorld(node, 40);
      await proofReader(node, world, origin).checkpoint('ledger');
      await backupOf(dataDir, copy);
      expect(await logOf(node)).toMatchObject({ origin, keys: [{ valid_to: null, endorsement: null }], previous: [] });
      expect(await metricsOf(node)).toMatch(/^svc_log_behind\{kind="store"\} 0$/m);
    }
    cpSync(dataDir, image, { recursive: true });
    await using node = await runNode({ dataDir, env });
    await appendMany(node, world, 20);
    kept = await proofReader(node, world, origin).checkpoint('ledger');
    await proofReader(node, world, origin).checkpoint('master');
  });

  test('has the key of the log, and its mark', () => {
    expect(['log.pem', 'COPY'].map((name) => existsSync(join(copy, name)))).toEqual([true, true]);
  });

  test('signs nothing, also after a restart, until `log new-origin` gives it another name', async () => {
    putInPlace(copy);
    for (let start = 1; start <= 2; start += 1) {
      await using node = await runNode({ dataDir, env });
      expectUnavailable(await proofReader(node, world, origin).refusals(), 'log_behind');
      expect(await healthOf(node)).toEqual({
        status: 'degraded',
        db: [
          { name: 'lmdb', status: 'ok' },
          { name: 'log', status: 'behind' },
        ],
      });
      expect(await metricsOf(node)).toMatch(/^svc_log_behind\{kind="store"\} 1$/m);
      expect(await metricsOf(node)).not.toMatch(/^svc_checkpoints_signed_total\{.*\} [1-9]/m);
      const master = { ...world.master, base: node.base };
      expect((await append(master, world.order.buyer, 'NOTED', { start })).status).toBe(200);
    }
    const moved = `${origin}-2026-11-26`;
    expect(await run('log', 'new-origin', moved)).toMatchObject({ code: 0, err: '' });
    expect(await run('log', 'new-origin', origin)).toMatchObject({ code: 1 });
    await expect(runNode({ dataDir, env })).rejects.toThrow(/LOG_ORIGIN/);
    await using node = await runNode({ dataDir, env: { LOG_ORIGIN: moved } });
    expect(await healthOf(node)).toMatchObject({ status: 'ok' });
    expect(await logOf(node)).toMatchObject({ origin: moved, previous: [{ origin }] });
    const reader = proofReader(node, world, moved);
    expect((await reader.checkpoint('ledger')).size).toBeLessThan(kept.size);
    await reader.checkpoint('master');
    await reader.included([0, 40]);
  });

  test('goes on after `log keep`, if nothing was signed since', async () => {
    putInPlace(copy);
    expect(await run('log', 'keep')).toMatchObject({ code: 0, err: '' });
    await using node = await runNode({ dataDir, env });
    expect(await healthOf(node)).toMatchObject({ status: 'ok' });
    expect(await logOf(node)).toMatchObject({ origin, previous: [] });
    const reader = proofReader(node, world, origin);
    const first = await reader.checkpoint('ledger');
    await appendMany(node, world, 10);
    expect(await reader.agreesWith(first)).toBe(true);
  });

  test('is not noticed if it was made by other means, but by the reader who kept a checkpoint', async () => {
    putInPlace(image);
    await using node = await runNode({ dataDir, env });
    const reader = proofReader(node, world, origin);
    expect((await reader.checkpoint('ledger')).size).toBeLessThan(kept.size);
    await appendMany(node, world, 21);
    // Two signed checkpoints of one log that contradict each other: the proof against the operator.
    expect((await reader.checkpoint('ledger')).size).toBeGreaterThan(kept.size);
    expect(await reader.agreesWith(kept)).toBe(false);
  });
});

test('a development node without LOG_ORIGIN takes a new origin on a restored copy by itself', async () => {
  const dataDir = join(root, 'development');
  await using node = await runNode({ dataDir });
  const { origin: before } = (await logOf(node)) as { origin: string };
  expect(before).toMatch(/^localhost\/dev-[0-9a-f]{8}$/);
  await using restored = await runNode({ dataDir: await backupOf(dataDir, join(root, 'development-copy')) });
  const after = (await logOf(restored)) as { origin: string };
  expect(after.origin).not.toBe(before);
  expect(after).toMatchObject({ previous: [{ origin: before, keys: [{ valid_to: expect.any(String) }] }] });
  expect(await healthOf(restored)).toMatchObject({ status: 'ok' });
});
