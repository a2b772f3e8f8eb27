import { WeightedMap } from '../collections/weighted-map.ts';
import type { MemoryBudget } from './memory-budget.ts';

/** A map of bounded bytes, which are its weights, counted in the memory budget as `queue`. */
export class CountedRecentMap<K, V> extends WeightedMap<K, V> {
  constructor(memory: MemoryBudget, maxBytes: number) {
    super(maxBytes, {
      add: (bytes) => memory.add('queue', bytes),
      release: (bytes) => memory.release('queue', bytes),
    });
  }
}
