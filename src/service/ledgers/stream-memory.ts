/** The memory budget of the node, as far as streams of appends need it. */
export interface NodeMemory {
  readonly maxBytes: number;
  /** Of all kinds. */
  heldBytes(): number;
  add(kind: 'stream', bytes: number): void;
  release(kind: 'stream', bytes: number): void;
}

/** Of the node's budget, what all streams together may have open. */
const share = 1 / 4;
/** The budget is told in steps of this size: its counters are shared by all threads, so each event would cost too much. */
const stepBytes = 64 * 1024;

/**
 * What all streams of appends of a node hold of events without an outcome, and of outcomes that nobody took. The node's
 * budget knows it to within 64 KiB.
 */
export class StreamsMemory {
  readonly #memory: NodeMemory;
  #heldBytes = 0;
  #toldBytes = 0;
  /** Streams that hold anything. */
  #streams = 0;

  constructor(memory: NodeMemory) {
    this.#memory = memory;
  }

  ofStream(): StreamMemory {
    return new StreamMemory(this);
  }

  /** Counts for a stream that held `before` bytes; negative ones are held no more. */
  hold(before: number, bytes: number): void {
    if (before === 0 && bytes > 0) this.#streams += 1;
    if (before > 0 && before + bytes === 0) this.#streams -= 1;
    this.#heldBytes += bytes;
    if (Math.abs(this.#heldBytes - this.#toldBytes) >= stepBytes) this.#tell();
  }

  /**
   * Whether a stream that holds so much may take one more event. One that holds nothing always may, so that none stands
   * still for good. One that holds less than its equal part may as long as the node has room, whatever others hold.
   */
  mayTake(own: number): boolean {
    if (own === 0) return true;
    const { maxBytes } = this.#memory;
    if (this.#memory.heldBytes() >= maxBytes) return false;
    return this.#heldBytes < maxBytes * share || own < (maxBytes * share) / this.#streams;
  }

  /** Whole steps alone: what is added is released in the same units. */
  #tell(): void {
    const bytes = Math.floor(this.#heldBytes / stepBytes) * stepBytes;
    if (bytes > this.#toldBytes) this.#memory.add('stream', bytes - this.#toldBytes);
    else this.#memory.release('stream', this.#toldBytes - bytes);
    this.#toldBytes = bytes;
  }
}

/** What one stream holds. */
export class StreamMemory {
  readonly #all: StreamsMemory;
  #heldBytes = 0;

  constructor(all: StreamsMemory) {
    this.#all = all;
  }

  get mayTake(): boolean {
    return this.#all.mayTake(this.#heldBytes);
  }

  /** Negative bytes are held no more. */
  hold(bytes: number): void {
    this.#all.hold(this.#heldBytes, bytes);
    this.#heldBytes += bytes;
  }
}
