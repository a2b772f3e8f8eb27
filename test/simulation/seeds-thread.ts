import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import type { RunResult } from './run.ts';
import { runSeeds } from './seeds.ts';

/** What a thread posts when it is through. */
export interface ThreadReport {
  readonly results: readonly RunResult[];
  /** CPU that its seeds took, as a multiple of that of one Ed25519 verification, which is looked at all along. */
  readonly verifications: number;
}

const verificationsBetween = 20;
const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const message = Buffer.alloc(500);
const signature = sign(null, message, privateKey);

/** CPU of this thread alone. Microseconds. */
function cpuOf(used: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(used);
  return user + system;
}

/** A thread that runs `workerData.count` seeds from `workerData.first` on and posts its report; it throws at the first that finds something. */
const { first, count } = workerData as { readonly first: number; readonly count: number };
const results: RunResult[] = [];
let seedsCpu = 0;
let verificationsCpu = 0;
for (let seed = first; seed < first + count; seed++) {
  const beforeSeed = process.threadCpuUsage();
  results.push(...(await runSeeds(seed, 1)));
  seedsCpu += cpuOf(beforeSeed);
  const beforeVerifying = process.threadCpuUsage();
  for (let at = 0; at < verificationsBetween; at++) verify(null, message, publicKey, signature);
  verificationsCpu += cpuOf(beforeVerifying);
}
const verificationCpu = verificationsCpu / (count * verificationsBetween);
const report: ThreadReport = { results, verifications: seedsCpu / verificationCpu };
parentPort?.postMessage(report);
