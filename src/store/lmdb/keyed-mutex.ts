/**
 * Runs one operation a key at a time, in the order of the calls. Each operation starts one turn of the event loop after
 * the one before it has ended. The ledger store claims under the mutex: the pause lets the caller of a claim append
 * before the next claim fences it.
 */
export class KeyedMutex {
  readonly #ends = new Map<string, Promise<void>>();

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#ends.get(key);
    const { promise: end, resolve } = Promise.withResolvers<void>();
    this.#ends.set(key, end);
    try {
      if (before !== undefined) {
        await before;
        await new Promise((next) => setImmediate(next));
      }
      return await work();
    } finally {
      if (this.#ends.get(key) === end) this.#ends.delete(key);
      resolve();
    }
  }
}
