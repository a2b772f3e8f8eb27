/** Is told the weight of each entry that comes or leaves. */
interface Counter {
  add(weight: number): void;
  release(weight: number): void;
}

const uncounted: Counter = { add: () => {}, release: () => {} };

/** A map whose entries have weights, together at most `weightMax`. The entry that was set longest ago leaves. */
export class WeightedMap<K, V> {
  readonly #weightMax: number;
  readonly #counter: Counter;
  readonly #entries = new Map<K, { readonly value: V; readonly weight: number }>();
  #weight = 0;

  constructor(weightMax: number, counter = uncounted) {
    this.#weightMax = weightMax;
    this.#counter = counter;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** An entry that is heavier than `weightMax` is not kept. */
  set(key: K, value: V, weight: number): void {
    this.delete(key);
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    this.#counter.add(weight);
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#weightMax) return;
      this.delete(oldest);
    }
  }

  delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
    this.#counter.release(entry.weight);
  }
}
