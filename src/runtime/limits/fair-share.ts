/**
 * An amount that many holders have together: bytes, or a number of streams. If it is above `max`, a holder that asks
 * for more is refused if it has more than the equal part. Otherwise the holder that has most is ended, which frees
 * enough.
 */
export class FairShare<T> {
  readonly max: number;
  readonly #end: (holder: T) => void;
  readonly #held = new Map<T, number>();
  #total = 0;
  /** Found when it is needed. Kept until it holds less. */
  #largest: T | null = null;

  /** `end` makes a holder release what it has, at once or soon. */
  constructor(max: number, end: (holder: T) => void = () => {}) {
    this.max = max;
    this.#end = end;
  }

  get total(): number {
    return this.#total;
  }

  get isFull(): boolean {
    return this.#total > this.max;
  }

  /** The equal part of each holder. */
  get part(): number {
    return this.max / this.#held.size;
  }

  heldBy(holder: T): number {
    return this.#held.get(holder) ?? 0;
  }

  /** Adds an amount. A negative one is released. */
  add(holder: T, amount: number): void {
    const held = this.heldBy(holder) + amount;
    this.#total += amount;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
    if (amount < 0 && holder === this.#largest) this.#largest = null;
    else if (this.#largest !== null && held > this.heldBy(this.#largest)) this.#largest = holder;
  }

  /** Call it after an amount was added. false: refuse the holder. */
  makeRoom(holder: T): boolean {
    if (this.isFull && this.heldBy(holder) > this.part) return false;
    this.endLargestIfFull();
    return true;
  }

  endLargestIfFull(): void {
    if (!this.isFull) return;
    const largest = this.#findLargest();
    if (largest !== null) this.#end(largest);
  }

  #findLargest(): T | null {
    if (this.#largest !== null) return this.#largest;
    let most = 0;
    for (const [holder, held] of this.#held) {
      if (held <= most) continue;
      most = held;
      this.#largest = holder;
    }
    return this.#largest;
  }
}
