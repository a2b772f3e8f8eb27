import type { MemoryBudget } from './memory-budget.ts';

/** A map of bounded bytes, counted in the memory budget as `queue`. The entry that was set longest ago leaves. */
export class CountedRecentMap<K, V> {
  readonly #memory: MemoryBudget;
  readonly #maxBytes: number;
  readonly #entries = new Map<K, { readonly value: V; readonly bytes: number }>();
  #bytes = 0;

  constructor(memory: MemoryBudget, maxBytes: number) {
    this.#memory = memory;
    this.#maxBytes = maxBytes;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** `bytes`: what the entry takes. */
  set(key: K, value: V, bytes: number): void {
    this.delete(key);
    this.#entries.set(key, { value, bytes });
    this.#bytes += bytes;
    this.#memory.add('queue', bytes);
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.delete(oldest);
    }
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
    this.#memory.release('queue', entry.bytes);
  }
}
