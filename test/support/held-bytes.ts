import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Bytes that this thread holds after a garbage collection, including large texts outside of the heap. */
export async function heldBytes(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // What was freed in one turn is given back in a later one.
  for (let turn = 0; turn < 3; turn += 1) {
    collect();
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
