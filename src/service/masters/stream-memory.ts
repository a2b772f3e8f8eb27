import { FairShare } from '../../runtime/limits/fair-share.ts';
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
  readonly #streams: FairShare<object>;
  #countedBytes = 0;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
    this.#streams = new FairShare(memory.maxBytes * share);
  }

  /** Adds bytes. Negative bytes are released. */
  hold(stream: object, bytes: number): void {
    this.#streams.add(stream, bytes);
    if (Math.abs(this.#streams.total - this.#countedBytes) >= stepBytes) this.#update();
  }

  /**
   * Whether a stream may take one more event. A stream that holds nothing always may, so that none stops for good. A
   * stream below its equal share may while the node has room, whatever the other streams hold.
   */
  mayTake(stream: object): boolean {
    const own = this.#streams.heldBy(stream);
    if (own === 0) return true;
    if (this.#memory.heldBytes() >= this.#memory.maxBytes) return false;
    return this.#streams.total < this.#streams.max || own < this.#streams.part;
  }

  /** Updates the budget in whole steps, so that what is added is released in the same units. */
  #update(): void {
    const bytes = Math.floor(this.#streams.total / stepBytes) * stepBytes;
    if (bytes > this.#countedBytes) this.#memory.add('stream', bytes - this.#countedBytes);
    else this.#memory.release('stream', this.#countedBytes - bytes);
    this.#countedBytes = bytes;
  }
}
