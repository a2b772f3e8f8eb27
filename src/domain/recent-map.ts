/** A map of bounded size: what was set longest ago is forgotten. */
export class RecentMap<K, V> {
  readonly #entriesMax: number;
  /** In the order of their setting. */
  readonly #entries = new Map<K, V>();

  constructor(entriesMax: number) {
    this.#entriesMax = entriesMax;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Sets a value; one that was set before counts as set now. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#entriesMax) return;
    const oldest = this.#entries.keys().next();
    if (!oldest.done) this.#entries.delete(oldest.value);
  }

  delete(key: K): boolean {
    return this.#entries.delete(key);
  }
}
