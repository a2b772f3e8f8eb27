import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { answerJobs } from './forked.ts';
import { sumOf } from './sum.ts';
import { type Counted, signaturesOf, verifyFor } from './verifications.ts';

/** The verifications that this machine can do without any service, measured in a process of its own. */
export interface LimitJob {
  readonly seconds: number;
  readonly keys: number;
}

/** Ed25519 verifications, a thread a core. */
async function verifications({ seconds, keys }: LimitJob): Promise<Counted> {
  const workers = Array.from(
    { length: availableParallelism() },
    () => new Worker(new URL(import.meta.url), { workerData: { seconds, keys } }),
  );
  const counts = await Promise.all(
    workers.map((worker) => new Promise<Counted>((resolve) => worker.once('message', resolve))),
  );
  return { count: sumOf(counts, ({ count }) => count), cpuUs: sumOf(counts, ({ cpuUs }) => cpuUs) };
}

if (!isMainThread) {
  const { seconds, keys } = workerData as LimitJob;
  parentPort?.postMessage(verifyFor(seconds, signaturesOf(keys)));
} else {
  answerJobs(verifications);
}
