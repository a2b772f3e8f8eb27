/**
 * An array with a free list, for items that come and go often. Each item has a number, its slot, until it is removed.
 * Slots are reused.
 *
 * A Map or Set has a cost here: V8's outgrown hash tables point to their successors. Once one of them is in the old
 * generation, every later table, with the items that were in it when it was outgrown, is kept until the next full
 * collection. Measured on appends by gRPC: a fifth of all allocations.
 */
export class Slab<T> {
  readonly #items: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#items.length - this.#free.length;
  }

  /** Returns the item's slot, from 0. */
  add(item: T): number {
    const slot = this.#free.pop() ?? this.#items.length;
    this.#items[slot] = item;
    return slot;
  }

  get(slot: number): T | undefined {
    return this.#items[slot];
  }

  /**
   * Removes the item in the slot. Returns false if the slot is empty. So a second removal does no harm, unless the slot
   * was reused in between.
   */
  remove(slot: number): boolean {
    if (this.#items[slot] === undefined) return false;
    this.#items[slot] = undefined;
    this.#free.push(slot);
    return true;
  }

  /** All items, in no particular order. An item that is removed during the iteration is skipped. */
  *[Symbol.iterator](): Iterator<T> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}
