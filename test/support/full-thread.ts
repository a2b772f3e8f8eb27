import { parentPort } from 'node:worker_threads';
import { itemBytes, type VerifyingBatch } from '../../src/service/signatures/verifying-batch.ts';

/** A verifying thread that finds each signature valid, and ends once it was given more than 100 keys. */
let keys = 0;
parentPort?.on('message', (batch: VerifyingBatch) => {
  keys += batch.keys.length;
  if (keys > 100) process.exit(1);
  parentPort?.postMessage(new Uint8Array(batch.items.length / itemBytes).fill(1));
});
