import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import type { RunResult } from './run.ts';
import { runSeeds } from './seeds.ts';

export interface ThreadReport {
  readonly results: readonly RunResult[];
  /** Ed25519 verifications that it made between its seeds, and the CPU that they took, in microseconds. */
  readonly verifications: number;
  readonly verificationsCpu: number;
}

const verificationsBetween = 20;
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const message = Buffer.alloc(500);
const signature = sign(null, message, privateKey);

/**
 * A thread that runs `workerData.count` seeds from `workerData.first` on and posts its report; it throws at the first
 * that finds something.
 */
const { first, count } = workerData as { readonly first: number; readonly count: number };
const results: RunResult[] = [];
let verificationsCpu = 0;
for (let seed = first; seed < first + count; seed++) {
  results.push(...(await runSeeds(seed, 1)));
  // The first ones find cold caches.
  for (let at = 0; at < verificationsBetween; at++) verify(null, message, publicKey, signature);
  const before = process.threadCpuUsage();
  for (let at = 0; at < verificationsBetween; at++) verify(null, message, publicKey, signature);
  const { user, system } = process.threadCpuUsage(before);
  verificationsCpu += user + system;
}
const report: ThreadReport = { results, verifications: count * verificationsBetween, verificationsCpu };
parentPort?.postMessage(report);
