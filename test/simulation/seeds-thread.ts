import { parentPort, workerData } from 'node:worker_threads';
import { runSeeds } from './seeds.ts';

/** A thread that runs `workerData.count` seeds from `workerData.first` on and posts their results; it throws at the first that finds something. */
const { first, count } = workerData as { readonly first: number; readonly count: number };
parentPort?.postMessage(await runSeeds(first, count));
