/**
 * Bytes, or other things that are counted, that many holders have together. If they have more than `maxBytes`, a
 * holder that asks for more is refused if it has more than the equal part. Otherwise the holder that has most is ended,
 * which frees enough.
 */
export class FairShare<T> {
  readonly maxBytes: number;
  readonly #end: (holder: T) => void;
  readonly #held = new Map<T, number>();
  #heldBytes = 0;
  /** Found when it is needed. Kept until it holds less. */
  #largest: T | null = null;

  /** `end` makes a holder release its bytes, at once or soon. */
  constructor(maxBytes: number, end: (holder: T) => void = () => {}) {
    this.maxBytes = maxBytes;
    this.#end = end;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  get isFull(): boolean {
    return this.#heldBytes > this.maxBytes;
  }

  /** The equal part of each holder. */
  get partBytes(): number {
    return this.maxBytes / this.#held.size;
  }

  /** What the holder with the most has. */
  get largestBytes(): number {
    const largest = this.#findLargest();
    return largest === null ? 0 : this.heldBy(largest);
  }

  heldBy(holder: T): number {
    return this.#held.get(holder) ?? 0;
  }

  /** Adds bytes. Negative bytes are released. */
  add(holder: T, bytes: number): void {
    const held = this.heldBy(holder) + bytes;
    this.#heldBytes += bytes;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
    if (bytes < 0 && holder === this.#largest) this.#largest = null;
    else if (this.#largest !== null && held > this.heldBy(this.#largest)) this.#largest = holder;
  }

  /** Call it after bytes were added. false: refuse the holder. */
  makeRoom(holder: T): boolean {
    if (this.isFull && this.heldBy(holder) > this.partBytes) return false;
    this.endLargestIfFull();
    return true;
  }

  endLargestIfFull(): void {
    if (!this.isFull) return;
    const largest = this.#findLargest();
    if (largest !== null) this.#end(largest);
  }

  #findLargest(): T | null {
    if (this.#largest === null)
      for (const [holder, bytes] of this.#held)
        if (this.#largest === null || bytes > this.heldBy(this.#largest)) this.#largest = holder;
    return this.#largest;
  }
}
