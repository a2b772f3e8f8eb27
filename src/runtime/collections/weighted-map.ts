interface Weighted<V> {
  readonly value: V;
  readonly weight: number;
}

/** A map whose entries have weights, together at most `weightMax`. The entries that were set longest ago leave. */
export class WeightedMap<K, V> {
  readonly #weightMax: number;
  readonly #entries = new Map<K, Weighted<V>>();
  #weight = 0;

  constructor(weightMax: number) {
    this.#weightMax = weightMax;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key)?.value;
  }

  /** An entry that is heavier than `weightMax` is not kept. */
  set(key: K, value: V, weight: number): void {
    this.#delete(key);
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#weightMax) return;
      this.#delete(oldest);
    }
  }

  #delete(key: K): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#weight -= entry.weight;
  }
}
