import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { anonymousMib } from '../../bench/server-process.ts';
import type { ReadStatuses } from '../support/attacks/read-target.ts';
import { readsAbandoned, readsFiltered, readsLarge, readsVerified } from '../support/attacks/reads.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { append, newMaster, newOrder } from '../support/parties.ts';
import { productionSettings } from '../support/production-settings.ts';
import { temporaryDir } from '../support/running-node.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 });

const attackMs = 20_000;
const connections = 20;
/**
 * What the node may take on top of what it has when nobody attacks, MiB; and what may be left of that a minute later.
 */
const attackMaxMib = 400;
const memoryMaxMib = 700;
const leftMaxMib = 100;
const healthMaxMs = 1_000;
const appendP99MaxMs = 300;

let node: NodeProcess;
let dir = '';

async function start(env: Record<string, string> = {}): Promise<void> {
  dir = temporaryDir();
  node = await startNodeProcess({ ...productionSettings(dir), DATA_DIR: join(dir, 'data'), ...env });
}
beforeEach(() => {
  dir = '';
});
afterEach(async () => {
  await node.kill();
  rmSync(dir, { recursive: true, force: true });
});

const memoryNow = () => anonymousMib(node.child.pid ?? 0);

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const begunMs = performance.now();
  await work();
  return performance.now() - begunMs;
}

test.each([
  ['filtered reads', readsFiltered, 200],
  ['verified reads', readsVerified, 200],
  ['abandoned reads', readsAbandoned, 0],
  ['reads of large events', readsLarge, 200],
])('%s on twenty connections delay nobody else, and their memory is released', async (_, run, status) => {
  await start();
  const order = await newOrder(node.base);
  const master = await newMaster(order);
  const statuses: ReadStatuses = new Map();
  const end = new AbortController();
  const attack = run({ httpUrl: node.base }, end.signal, connections, { statuses });
  const reads = () => statuses.get(status) ?? 0;
  await expect.poll(reads, { timeout: 60_000 }).toBeGreaterThan(0);
  const readsBefore = reads();
  const calm = memoryNow();
  const appendsMs: number[] = [];
  let [healthMs, mostMib] = [0, 0];
  for (const endMs = performance.now() + attackMs; performance.now() < endMs; await delay(20)) {
    const n = appendsMs.length;
    appendsMs.push(await msOf(async () => expect((await append(master, order.buyer, 'E', { n })).status).toBe(200)));
    healthMs = Math.max(healthMs, await msOf(async () => (await fetch(`${node.base}/v1/health`)).text()));
    mostMib = Math.max(mostMib, memoryNow());
  }
  end.abort();
  await attack;
  expect(reads()).toBeGreaterThan(readsBefore);
  expect(mostMib).toBeLessThan(memoryMaxMib);
  expect(mostMib - calm).toBeLessThan(attackMaxMib);
  expect(healthMs).toBeLessThan(healthMaxMs);
  expect(appendsMs.toSorted((a, b) => a - b)[Math.floor(appendsMs.length * 0.99)]).toBeLessThan(appendP99MaxMs);
  await delay(60_000);
  expect(memoryNow() - calm).toBeLessThan(leftMaxMib);
});

test('sixty concurrent reads of 10 MB do not end a node with a heap of 256 MB', async () => {
  await start({ NODE_OPTIONS: '--max-old-space-size=256' });
  const statuses: ReadStatuses = new Map();
  const end = new AbortController();
  const attack = readsLarge({ httpUrl: node.base }, end.signal, 60, { statuses });
  await expect.poll(() => statuses.get(200) ?? 0, { timeout: 60_000 }).toBeGreaterThan(100);
  end.abort();
  await attack;
  expect(node.child.exitCode).toBeNull();
  expect((await fetch(`${node.base}/v1/health`)).status).toBe(200);
});
