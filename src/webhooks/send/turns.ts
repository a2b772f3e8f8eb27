/**
 * A fair queue. Owners are served round-robin, however many elements each has. The elements of one owner are served in
 * order. An owner that starts to wait goes behind all that wait already, so at most these are served before it.
 */
export class Turns<T> {
  /** By owner, in the order in which they are served next. */
  readonly #waiting = new Map<string, Set<T>>();

  get owners(): Iterable<string> {
    return this.#waiting.keys();
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  has(owner: string): boolean {
    return this.#waiting.has(owner);
  }

  /** Adds an element. An element that waits already keeps its place. */
  add(owner: string, one: T): void {
    const waiting = this.#waiting.get(owner) ?? new Set();
    this.#waiting.set(owner, waiting.add(one));
  }

  /**
   * Removes and returns the next element of the first owner that `may` allows, or null if no such owner waits. The
   * owner goes behind all others.
   */
  take(may: (owner: string) => boolean): { readonly owner: string; readonly one: T } | null {
    for (const [owner, waiting] of this.#waiting) {
      if (!may(owner)) continue;
      this.#waiting.delete(owner);
      for (const one of waiting) {
        waiting.delete(one);
        if (waiting.size > 0) this.#waiting.set(owner, waiting);
        return { owner, one };
      }
    }
    return null;
  }
}
