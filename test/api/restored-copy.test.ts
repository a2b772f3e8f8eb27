import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { append, newMaster, newOrder, type Order } from '../support/parties.ts';
import { done } from '../support/parties-rest.ts';
import { runHere } from '../support/program-here.ts';
import { type RunningTestNode, runNode, suiteDir } from '../support/running-node.ts';

const root = suiteDir();
const origin = 'ledger.example/v1';
let copies = 0;

/** A backup of the node's data, as a data directory. */
async function backupOf(dataDir: string): Promise<string> {
  copies += 1;
  const copy = join(root, `copy-${copies}`);
  expect(await runHere(['backup', copy], { env: { DATA_DIR: dataDir } })).toMatchObject({ code: 0 });
  return copy;
}

const logOf = async (node: RunningTestNode) => (await done(node.base, 'GET', '/.well-known/svc-authority')).body.log;
const healthOf = async (node: RunningTestNode) => (await done(node.base, 'GET', '/health')).body;
const metricsOf = async (node: RunningTestNode) => (await fetch(`${node.opsBase}/metrics`)).text();

describe('a restored backup', () => {
  const dataDir = join(root, 'original');
  const env = { LOG_ORIGIN: origin };
  let order: Order;
  let copy: string;

  beforeAll(async () => {
    await using node = await runNode({ dataDir, env });
    order = await newOrder(node.base);
    copy = await backupOf(dataDir);
    expect(await logOf(node)).toMatchObject({ origin, keys: [{ valid_to: null, endorsement: null }], previous: [] });
    expect(await metricsOf(node)).toMatch(/^svc_log_behind\{kind="store"\} 0$/m);
  });

  test('has the key of the log, and its mark', () => {
    expect(['log.pem', 'COPY'].map((name) => existsSync(join(copy, name)))).toEqual([true, true]);
  });

  test('is behind at each start until a command says what it is, while appends and reads go on', async () => {
    for (let start = 1; start <= 2; start += 1) {
      await using node = await runNode({ dataDir: copy, env });
      const health = {
        status: 'degraded',
        db: [
          { name: 'lmdb', status: 'ok' },
          { name: 'log', status: 'behind' },
        ],
      };
      expect(await healthOf(node)).toEqual(health);
      expect(await metricsOf(node)).toMatch(/^svc_log_behind\{kind="store"\} 1$/m);
      const master = await newMaster({ ...order, base: node.base });
      expect((await append(master, order.buyer, 'NOTED', { start })).status).toBe(200);
    }
    const renamed = { ...env, DATA_DIR: copy };
    expect(await runHere(['log', 'new-origin', `${origin}-2`], { env: renamed })).toMatchObject({ code: 0, err: '' });
    await expect(runNode({ dataDir: copy, env })).rejects.toThrow(/LOG_ORIGIN/);
    await using node = await runNode({ dataDir: copy, env: { LOG_ORIGIN: `${origin}-2` } });
    expect(await healthOf(node)).toMatchObject({ status: 'ok' });
    expect(await logOf(node)).toMatchObject({ origin: `${origin}-2`, previous: [{ origin }] });
  });

  test('goes on under its name after `log keep`', async () => {
    const moved = await backupOf(dataDir);
    expect(await runHere(['log', 'keep'], { env: { ...env, DATA_DIR: moved } })).toMatchObject({ code: 0, err: '' });
    await using node = await runNode({ dataDir: moved, env });
    expect(await healthOf(node)).toMatchObject({ status: 'ok' });
    expect(await logOf(node)).toMatchObject({ origin, previous: [] });
  });
});

test('a development node without LOG_ORIGIN takes a new origin on a restored copy by itself', async () => {
  const dataDir = join(root, 'development');
  await using node = await runNode({ dataDir });
  const { origin: before } = (await logOf(node)) as { origin: string };
  expect(before).toMatch(/^localhost\/dev-[0-9a-f]{8}$/);
  await using restored = await runNode({ dataDir: await backupOf(dataDir) });
  const after = (await logOf(restored)) as { origin: string };
  expect(after.origin).not.toBe(before);
  expect(after).toMatchObject({ previous: [{ origin: before, keys: [{ valid_to: expect.any(String) }] }] });
  expect(await healthOf(restored)).toMatchObject({ status: 'ok' });
});
