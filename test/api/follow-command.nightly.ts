import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fixedPorts } from '../cluster/rig/fixed-ports.ts';
import { compileCache } from '../support/compile-cache.ts';
import { startNodeProcess } from '../support/node-process.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { suiteDir } from '../support/running-node.ts';
import { cliMain } from '../support/shell.ts';

const dir = suiteDir();
const restarts = 3;
const waitMaxMs = 30_000;

test('the command follow goes on after each kill of the node, and prints each event once and in order', async () => {
  const [port = 0] = await fixedPorts(1);
  const start = () => startNodeProcess({ DATA_DIR: join(dir, 'data'), PORT: String(port) });
  let node = await start();
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  const args = [cliMain, 'follow', order.ledgerId, '--from', '0', '--json', '--url', node.base];
  const { apiKey } = order.buyer;
  const env = { ...compileCache, XDG_CONFIG_HOME: join(dir, 'config'), LEDGER_TRUST_API_KEY: apiKey };
  const child = spawn(process.execPath, args, { env });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
  const printed = () => out.split('\n').filter((line) => line !== '');
  // Genesis, the opening of the order and the master.
  let written = 3;
  try {
    await expect.poll(() => printed().length, { timeout: waitMaxMs }).toBe(written);
    for (let restart = 0; restart < restarts; restart += 1) {
      await node.kill();
      await expect.poll(() => err.split('Trying again in').length, { timeout: waitMaxMs }).toBeGreaterThan(restart + 1);
      node = await start();
      for (let more = 0; more < 2; more += 1) {
        expect((await append(master, order.buyer, 'PACKED', { restart, more })).status).toBe(200);
        written += 1;
      }
      await expect.poll(() => printed().length, { timeout: waitMaxMs }).toBe(written);
    }
    child.kill('SIGINT');
    expect(await ended).toBe(0);
  } finally {
    child.kill('SIGKILL');
    await node.kill();
  }
  const events = printed().map((line) => JSON.parse(line));
  expect(events.map(({ event }) => event.seq)).toEqual(Array.from({ length: written }, (_, seq) => seq));
  expect(new Set(events.map(({ checks }) => `${checks.content_hash} ${checks.chain_hash}`))).toEqual(
    new Set(['true true']),
  );
});
