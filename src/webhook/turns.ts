/**
 * What waits for its turn. Owners take turns, however much each has waiting; one that had none waiting is behind all that had, so it waits
 * for as many turns as owners wait when it comes.
 */
export class Turns<T> {
  readonly #ofOneOwner: 'oldest' | 'newest';
  /** By owner, whose turn is next first. */
  readonly #waiting = new Map<string, Set<T>>();

  /** `ofOneOwner`: what of one owner's goes first, what has waited longest or what came last. */
  constructor(ofOneOwner: 'oldest' | 'newest') {
    this.#ofOneOwner = ofOneOwner;
  }

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

  delete(owner: string, one: T): void {
    const waiting = this.#waiting.get(owner);
    waiting?.delete(one);
    if (waiting?.size === 0) this.#waiting.delete(owner);
  }

  /** Whose turn it is and for what, of those that may have one now. */
  next(may: (owner: string, one: T) => boolean): { readonly owner: string; readonly one: T } | undefined {
    for (const [owner, waiting] of this.#waiting) {
      const inOrder = this.#ofOneOwner === 'oldest' ? waiting : [...waiting].reverse();
      for (const one of inOrder) if (may(owner, one)) return { owner, one };
    }
    return undefined;
  }

  /** The owner has had a turn for this, which waits no more: its next turn is behind those of all others. */
  took(owner: string, one: T): void {
    this.delete(owner, one);
    const waiting = this.#waiting.get(owner);
    if (waiting !== undefined && this.#waiting.delete(owner)) this.#waiting.set(owner, waiting);
  }
}
