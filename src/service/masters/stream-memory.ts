import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';

/** The part of the node's budget that all streams together may use. */
const share = 1 / 4;
/**
 * The budget is updated in steps of this size: its counters are shared by all threads, so an update for each event
 * would cost too much.
 */
const stepBytes = 64 * 1024;

/**
 * Counts the bytes that all append streams of a node hold: events without an outcome, and outcomes that were not sent.
 * The node's budget has the sum to within 64 KiB.
 */
export class StreamsMemory {
  readonly #memory: MemoryBudget;
  #heldBytes = 0;
  #countedBytes = 0;
  /** Streams that hold anything. */
  #streams = 0;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  ofStream(): StreamMemory {
    return new StreamMemory(this);
  }

  /** Adds bytes for a stream that held `before` bytes. Negative bytes are released. */
  hold(before: number, bytes: number): void {
    if (before === 0 && bytes > 0) this.#streams += 1;
    if (before > 0 && before + bytes === 0) this.#streams -= 1;
    this.#heldBytes += bytes;
    if (Math.abs(this.#heldBytes - this.#countedBytes) >= stepBytes) this.#update();
  }

  /**
   * Whether a stream that holds `own` bytes may take one more event. A stream that holds nothing always may, so that
   * none stops for good. A stream below its equal share may while the node has room, whatever the other streams hold.
   */
  mayTake(own: number): boolean {
    if (own === 0) return true;
    const { maxBytes } = this.#memory;
    if (this.#memory.heldBytes() >= maxBytes) return false;
    return this.#heldBytes < maxBytes * share || own < (maxBytes * share) / this.#streams;
  }

  /** Updates the budget in whole steps, so that what is added is released in the same units. */
  #update(): void {
    const bytes = Math.floor(this.#heldBytes / stepBytes) * stepBytes;
    if (bytes > this.#countedBytes) this.#memory.add('stream', bytes - this.#countedBytes);
    else this.#memory.release('stream', this.#countedBytes - bytes);
    this.#countedBytes = bytes;
  }
}

/** The bytes that one stream holds. */
export class StreamMemory {
  readonly #all: StreamsMemory;
  #heldBytes = 0;

  constructor(all: StreamsMemory) {
    this.#all = all;
  }

  get mayTake(): boolean {
    return this.#all.mayTake(this.#heldBytes);
  }

  /** Adds bytes. Negative bytes are released. */
  hold(bytes: number): void {
    this.#all.hold(this.#heldBytes, bytes);
    this.#heldBytes += bytes;
  }
}
