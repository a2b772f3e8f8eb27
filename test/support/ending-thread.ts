import { parentPort } from 'node:worker_threads';

/** A verifying thread that ends at its first batch. */
parentPort?.on('message', () => process.exit(1));
