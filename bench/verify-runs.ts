import { availableParallelism } from 'node:os';
import { runForked } from './forked.ts';
import type { PreparedRun } from './run.ts';
import type { ServerProcess } from './server-process.ts';
import { keyCount } from './setting.ts';
import { wrongIn } from './signing.ts';
import { rounded, sumOf } from './sum.ts';
import type { VerifyingJob, VerifyingResult } from './verifying-process.ts';

export interface VerificationReport {
  readonly events: number;
  readonly actorSignatures: number;
  readonly seconds: number;
}

/** Reads back and verifies everything that runs wrote, on all cores. Throws if anything is wrong. */
export async function verifyRuns(server: ServerProcess, runs: readonly PreparedRun[]): Promise<VerificationReport> {
  const startedMs = performance.now();
  const jobs = runs.flatMap((run) => verifyingJobs(server, run).map((job) => ({ run, job })));
  const results = new Map<PreparedRun, VerifyingResult[]>(runs.map((run) => [run, []]));
  const worker = async (): Promise<void> => {
    for (let next = jobs.shift(); next !== undefined; next = jobs.shift()) {
      results.get(next.run)?.push(await runForked<VerifyingJob, VerifyingResult>('verifying-process.ts', next.job));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  for (const [run, parts] of results) checkWhole(run, parts);
  const all = [...results.values()].flat();
  const [events, actorSignatures] = [sumOf(all, (part) => part.verified), sumOf(all, (part) => part.actorSignatures)];
  return { events, actorSignatures, seconds: rounded((performance.now() - startedMs) / 1_000) };
}

/** One job for a hot ledger, several for a run of many. */
function verifyingJobs(server: ServerProcess, { setting, file }: PreparedRun): VerifyingJob[] {
  const readers = setting.ledgers.map((ledger) => {
    const reader = setting.keys.find(({ actorId }) => actorId === ledger.buyerActorId);
    if (reader === undefined) throw new Error('nobody may read the ledger');
    return { ledgerId: ledger.ledgerId, reader };
  });
  const parts = Math.min(readers.length, 2 * availableParallelism());
  return Array.from({ length: parts }, (_, part) => ({
    baseUrl: server.baseUrl,
    events: file.recordsPerSigner * keyCount,
    ledgers: readers.filter((__, at) => at % parts === part),
  }));
}

/** Every event of the run is there once, but for the wrongly signed ones, which are not. */
function checkWhole({ transport, file }: PreparedRun, parts: readonly VerifyingResult[]): void {
  const problems = parts.flatMap((part) => part.problems);
  if (problems.length > 0) throw new Error(`${transport}: ${problems.join('; ')}`);
  const events = file.recordsPerSigner * keyCount;
  let found = 0;
  for (const part of parts) {
    for (const byte of Buffer.from(part.found, 'base64')) for (let bits = byte; bits > 0; bits &= bits - 1) found += 1;
  }
  const expected = events - wrongIn(0, file.recordsPerSigner, keyCount);
  if (found !== expected) throw new Error(`${transport}: ${found} events are there, not ${expected}`);
}
