import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { commandsPerSeed, faultsPerSeed, type RunResult } from './run.ts';
import type { ThreadReport } from './seeds-thread.ts';

/** SIMULATION_SEEDS asks for more. */
const seeds = Number(process.env.SIMULATION_SEEDS ?? 2_000);
/**
 * 2,000 seeds are over in three minutes on two cores that verify 5,000 Ed25519 signatures a second each while both are busy. What a seed
 * costs is judged in verifications, which the same threads make between the seeds: the time itself says what else the machine had to do.
 */
const verificationsPerSeedMax = 900;
const threads = 2;
const msPerSeedEver = 300;

/** So many seeds from `first` on, in a thread of their own. Rejects with the first that finds something. */
async function runInThread(first: number, count: number): Promise<ThreadReport> {
  const thread = new Worker(new URL('./seeds-thread.ts', import.meta.url), { workerData: { first, count } });
  const [report] = await once(thread, 'message');
  return report;
}

test('nodes that fail at random keep their word', { timeout: seeds * msPerSeedEver }, async () => {
  const share = Math.ceil(seeds / threads);
  const shares = Array.from({ length: threads }, (_, at) => runInThread(1 + at * share, share));
  const reports = await Promise.all(shares);
  const results = reports.flatMap((report) => report.results);
  const verifications = reports.reduce((sum, report) => sum + report.verifications, 0);
  expect(verifications / results.length).toBeLessThan(verificationsPerSeedMax);

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
