import { setFlagsFromString } from 'node:v8';

/**
 * How much the heap may grow, in percent of what lived through the last full collection, before the next one. V8's own choice is up to
 * 300 % where memory is plenty, and a node under load then holds three times what it uses. Measured (docs/performance.md): with
 * 150 % it holds 45 MiB more, for the same processor time.
 */
const growthPercent = 100;

/** Bounds the heaps of this process. For processes that are a node, before it starts. */
export function boundHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${growthPercent}`);
  // The command line's is for the main thread, which has it by now. It would go before the `resourceLimits` of all other threads.
  setFlagsFromString('--max-semi-space-size=0');
}
