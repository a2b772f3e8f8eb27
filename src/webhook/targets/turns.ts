/**
 * What waits for its turn. Owners take turns, however much each has waiting, and of each goes first what has waited longest; one that had
 * none waiting is behind all that had, so it waits for as many turns as owners wait when it comes.
 */
export class Turns<T> {
  /** By owner, whose turn is next first. */
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

  /** What waits already keeps its place. */
  add(owner: string, one: T): void {
    const waiting = this.#waiting.get(owner) ?? new Set();
    this.#waiting.set(owner, waiting.add(one));
  }

  /**
   * Takes out what has its turn, of the owners that may have one now; null: of these nobody waits. The owner's next turn is behind those of
   * all others.
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
