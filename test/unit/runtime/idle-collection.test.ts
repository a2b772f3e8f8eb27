import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';

const module = JSON.stringify(new URL('../../../src/runtime/limits/idle-collection.ts', import.meta.url).href);

const littleMib = 52;

/**
 * A thread that held 96 MiB for long enough to be taken for lasting, and from then on makes a little at a time, so that
 * V8 sees no reason to collect. Says how many MiB it holds in the end. `busyMs`: how long it works in each 20 ms.
 * `waitMs`: how long it waits until it holds little.
 */
const burst = (call: string, busyMs = 0, waitMs = 2_000): string => `
  import { setTimeout as delay } from 'node:timers/promises';
  import { getHeapStatistics } from 'node:v8';
  import { parentPort } from 'node:worker_threads';
  import { collectWhenIdle } from ${module};
  ${call}
  await delay(300);
  let held = Array.from({ length: 96 }, () => Array.from({ length: 2 ** 15 }, (_, at) => ({ at })));
  held = held.length === 0 ? held : null;
  const more = setInterval(() => {
    const untilMs = performance.now() + ${busyMs};
    JSON.stringify(Array.from({ length: 2_000 }, (_, at) => ({ at })));
    while (performance.now() < untilMs);
  }, 20);
  const heldMib = () => getHeapStatistics().total_physical_size / 2 ** 20;
  const untilMs = performance.now() + ${waitMs};
  do await delay(100);
  while (heldMib() > ${littleMib} && performance.now() < untilMs);
  clearInterval(more);
  parentPort.postMessage(heldMib());
`;

/**
 * A process that lets go of 96 secret keys of 1 MiB, whose bytes are outside of the heap, and V8 does not know of them.
 * Says how many of them are collected.
 */
const outsideOfHeap = (call: string): string => `
  import { createSecretKey } from 'node:crypto';
  import { setTimeout as delay } from 'node:timers/promises';
  import { collectWhenIdle } from ${module};
  ${call}
  await delay(300);
  let collected = 0;
  const registry = new FinalizationRegistry(() => { collected += 1; });
  const bytes = Buffer.alloc(2 ** 20, 1);
  const keys = Array.from({ length: 96 }, () => createSecretKey(bytes));
  for (const key of keys) registry.register(key);
  keys.length = 0;
  await delay(2_000);
  process.send(collected);
`;

/** What a thread with this code says. */
async function said(code: string): Promise<number> {
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  const [number] = await once(thread, 'message');
  await thread.terminate();
  return number;
}

/** What a process with this code says. Here, the memory of other tests would count too. */
async function saidByProcess(code: string): Promise<number> {
  const args = ['--input-type=module', '--eval', code];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [number] = await once(child, 'message');
  child.kill();
  return number;
}

test('an idle thread returns the memory of a burst', async () => {
  const [without, held] = await Promise.all([
    said(burst('')),
    said(burst('collectWhenIdle({ checkIntervalMs: 200 });')),
  ]);
  expect(without).toBeGreaterThan(80);
  expect(held).toBeLessThan(40);
});

test('a thread that works for a quarter of the time returns the memory of a burst too', async () => {
  const [without, held] = await Promise.all([
    said(burst('', 4)),
    // Other tests may make it busier for some seconds.
    said(burst('collectWhenIdle({ checkIntervalMs: 200 });', 4, 8_000)),
  ]);
  expect(without).toBeGreaterThan(80);
  expect(held).toBeLessThan(littleMib);
});

test('an idle thread lets go of what it held outside of its heap', async () => {
  expect(await saidByProcess(outsideOfHeap(''))).toBe(0);
  expect(
    await saidByProcess(outsideOfHeap('collectWhenIdle({ checkIntervalMs: 200, processGrowthBytes: 2 ** 26 });')),
  ).toBeGreaterThan(90);
});
