/** An element with a position. A smaller `turn` comes first. */
interface InTurn {
  readonly turn: number;
}

/** A binary heap: gives the element with the smallest `turn`. */
export class TurnHeap<T extends InTurn> {
  readonly #ones: T[] = [];

  get first(): T | undefined {
    return this.#ones[0];
  }

  push(one: T): void {
    let at = this.#ones.length;
    while (at > 0) {
      const above = (at - 1) >>> 1;
      const parent = this.#ones[above];
      if (parent === undefined || parent.turn <= one.turn) break;
      this.#ones[at] = parent;
      at = above;
    }
    this.#ones[at] = one;
  }

  /** Removes the first element. */
  pop(): void {
    const last = this.#ones.pop();
    if (last === undefined || this.#ones.length === 0) return;
    let at = 0;
    for (;;) {
      const left = this.#ones[2 * at + 1];
      const right = this.#ones[2 * at + 2];
      const isRight = left !== undefined && right !== undefined && right.turn < left.turn;
      const below = isRight ? right : left;
      if (below === undefined || below.turn >= last.turn) break;
      this.#ones[at] = below;
      at = 2 * at + (isRight ? 2 : 1);
    }
    this.#ones[at] = last;
  }

  clear(): void {
    this.#ones.length = 0;
  }
}
