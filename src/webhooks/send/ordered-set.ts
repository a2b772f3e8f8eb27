interface Link<T> {
  readonly one: T;
  before: Link<T> | null;
  after: Link<T> | null;
}

/** A set that can be iterated from either end. The built-in Set can be iterated from its oldest element only. */
export class OrderedSet<T> {
  readonly #links = new Map<T, Link<T>>();
  #oldest: Link<T> | null = null;
  #newest: Link<T> | null = null;

  get isEmpty(): boolean {
    return this.#newest === null;
  }

  has(one: T): boolean {
    return this.#links.has(one);
  }

  /** Adds an element at the end. An element that is in the set already keeps its place. */
  add(one: T): void {
    if (this.#links.has(one)) return;
    const link: Link<T> = { one, before: this.#newest, after: null };
    if (this.#newest === null) this.#oldest = link;
    else this.#newest.after = link;
    this.#newest = link;
    this.#links.set(one, link);
  }

  delete(one: T): void {
    const link = this.#links.get(one);
    if (link === undefined) return;
    this.#links.delete(one);
    if (link.before === null) this.#oldest = link.after;
    else link.before.after = link.after;
    if (link.after === null) this.#newest = link.before;
    else link.after.before = link.before;
  }

  /** Iterates from one end. The set must not change meanwhile. */
  *from(end: 'oldest' | 'newest'): IterableIterator<T> {
    const isOldest = end === 'oldest';
    let link = isOldest ? this.#oldest : this.#newest;
    for (; link !== null; link = isOldest ? link.after : link.before) yield link.one;
  }
}
