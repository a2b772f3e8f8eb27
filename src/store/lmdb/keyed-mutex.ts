/**
 * One at a time for each key, in the order of asking. Who comes next starts a turn of the event loop after the one
 * before has ended: a claim that is followed at once by another would never come to append.
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
