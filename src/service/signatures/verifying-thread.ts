import { constants, getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { type CheckingKey, checkingKey, signatureCheck } from './signature-check.ts';
import { itemBytes, readItem, type VerifyingBatch, type VerifyingResults } from './verifying-batch.ts';

/** Script of a verifying thread: receives batches and answers with their results, in order. */
const port = parentPort;
if (port === null) throw new Error('this runs as a thread of VerifyingThreads');
const check = await signatureCheck();
const keys = new Map<number, CheckingKey>();

/** On Linux this is the priority of this thread alone. On few cores the main thread and LMDB's writer go first. */
const niceness = 5;
try {
  setPriority(0, Math.min(getPriority(0) + niceness, constants.priority.PRIORITY_LOW));
} catch {
  // Not permitted on this system: scheduling is less fair.
}

port.on('message', (batch: VerifyingBatch) => {
  for (const [number, x] of batch.keys) keys.set(number, checkingKey(x));
  const count = batch.items.length / itemBytes;
  const results: VerifyingResults = new Uint8Array(count);
  for (let at = 0; at < count; at++) {
    const { keyNumber, digest, signature } = readItem(batch.items, at);
    const key = keys.get(keyNumber);
    if (key === undefined) throw new Error(`key ${keyNumber} was never sent`);
    results[at] = check(digest, signature, key) ? 1 : 0;
  }
  port.postMessage(results, [results.buffer]);
});
