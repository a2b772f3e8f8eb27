import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runProcess } from './child.ts';
import type { LimitJob } from './limit-process.ts';
import { LoadGenerator } from './load-generator.ts';
import type { LoadJob, SteadyLoad } from './load-job.ts';
import type { Records } from './load-report.ts';
import { keyCount } from './setting.ts';

/** Bytes of a stored event whose payload has 500 bytes. */
const rowBytes = 1_750;

/** How long a look at the limit of verifications takes. */
const lookSeconds = 1;

/** Ed25519 verifications a second of Node on all cores. */
export function verificationLimit(): Promise<number> {
  const job: LimitJob = { kind: 'verifications', seconds: lookSeconds, keys: keyCount };
  return runProcess<LimitJob, number>('limit-process.ts', job);
}

/** Durable LMDB puts a second, 64 in a commit. */
export function lmdbLimit(seconds: number, workDir: string): Promise<number> {
  const directory = join(workDir, 'lmdb-limit');
  mkdirSync(directory);
  return runProcess<LimitJob, number>('limit-process.ts', { kind: 'lmdb', seconds, directory, rowBytes });
}

/** Sends the same REST requests to a bare HTTP server after those of `warmUp`. */
export async function echoLimit(job: Omit<LoadJob, 'port'>, warmUp: Records): Promise<SteadyLoad> {
  const script = new URL('limit-process.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [script, 'echo'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const port = await new Promise<number>((resolve) => child.stdout.once('data', (text) => resolve(Number(text))));
  try {
    await using generator = new LoadGenerator();
    await generator.run({ ...job, ...warmUp, port });
    return (await generator.run({ ...job, port })).steady;
  } finally {
    child.stdin.end();
  }
}
