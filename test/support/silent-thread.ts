import { parentPort } from 'node:worker_threads';

/** A verifying thread that takes work and never answers. */
parentPort?.on('message', () => {});
