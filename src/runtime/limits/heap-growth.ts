import { setFlagsFromString } from 'node:v8';

/**
 * How much the heap may grow before the next full collection, in percent of what survived the last one. V8 itself
 * allows up to 300 % if there is much memory, and a node under load then holds three times what it uses. Measured
 * (docs/performance.md): 150 % holds 45 MiB more, for the same processor time.
 */
const growthPercent = 100;

/** Bounds the heaps of this process. Call it in the process of a node, before the node starts. */
export function boundHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`);
  // Resets the command line's flag. The main thread has applied it already; in other threads it would override their
  // `resourceLimits`.
  setFlagsFromString('--max-semi-space-size=0');
}
