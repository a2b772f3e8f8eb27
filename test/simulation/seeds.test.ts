import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { commandsPerSeed, faultsPerSeed, type RunResult } from './run.ts';

/** SIMULATION_SEEDS asks for more. */
const seeds = Number(process.env.SIMULATION_SEEDS ?? 2_000);
/** 2,000 of them are over in three minutes. */
const msPerSeedMax = 90;
const threads = 2;

/** So many seeds from `first` on, in a thread of their own. Rejects with the first that finds something. */
async function runInThread(first: number, count: number): Promise<RunResult[]> {
  const thread = new Worker(new URL('./seeds-thread.ts', import.meta.url), { workerData: { first, count } });
  const [results] = await once(thread, 'message');
  return results;
}

test('nodes that fail at random keep their word', { timeout: 2 * seeds * msPerSeedMax }, async () => {
  const began = performance.now();
  const share = Math.ceil(seeds / threads);
  const shares = Array.from({ length: threads }, (_, at) => runInThread(1 + at * share, share));
  const results = (await Promise.all(shares)).flat();
  expect((performance.now() - began) / seeds).toBeLessThan(msPerSeedMax);

  // That nothing was found counts only where enough went wrong.
  expect(results.length).toBeGreaterThanOrEqual(seeds);
  expect(Math.min(...results.map(({ faults }) => faults.length))).toBeGreaterThanOrEqual(faultsPerSeed);
  const mean = (of: (counts: RunResult['counts']) => number) =>
    results.reduce((sum, { counts }) => sum + of(counts), 0) / results.length;
  expect(mean(({ written, refused }) => written + refused)).toBeGreaterThan(commandsPerSeed * 0.75);
  expect(mean(({ refused }) => refused)).toBeGreaterThan(20);
  expect(mean(({ claims }) => claims)).toBeGreaterThan(10);
  expect(mean(({ fenced }) => fenced)).toBeGreaterThan(5);
  expect(mean(({ unknown }) => unknown)).toBeGreaterThan(0.5);
  expect(mean(({ replayed }) => replayed)).toBeGreaterThan(1);
  expect(mean(({ forwarded }) => forwarded)).toBeGreaterThan(50);
  expect(mean(({ notOwner }) => notOwner)).toBeGreaterThan(1);
  expect(mean(({ unreachable }) => unreachable)).toBeGreaterThan(5);
  expect(mean(({ moved }) => moved)).toBeGreaterThan(8);
});
