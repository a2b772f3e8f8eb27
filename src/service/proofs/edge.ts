import type { CompactRange } from '../../domain/log/compact-range.ts';

/** Leaves that are kept while the edge is brought forward: what a busy ledger appends in that time. */
const waitingMax = 4_096;

/** Returns the certain leaves `from` to `to` (excluded). */
type ReadLeaves = (from: number, to: number) => Promise<readonly Uint8Array[]>;

/**
 * The end of a log's tree: enough to know its root, and to append. A node that owns the ledger extends it by what it
 * commits; other nodes bring it forward when they are asked.
 */
export class Edge {
  readonly #range: CompactRange;
  /** Leaves behind the range, in order, that were committed while it is brought forward. null: it is not. */
  #waiting: { readonly index: number; readonly leaf: Uint8Array }[] | null = null;
  #forwarding: Promise<void> | null = null;

  constructor(range: CompactRange) {
    this.#range = range;
  }

  get size(): number {
    return this.#range.size;
  }

  /** A leaf that is certain. It is left out if it does not follow the last one: then the edge is behind. */
  committed(index: number, leaf: Uint8Array): void {
    if (index === this.#range.size) this.#range.append(leaf);
    else if (this.#waiting !== null && index > this.#range.size && this.#waiting.length < waitingMax)
      this.#waiting.push({ index, leaf });
  }

  root(): Uint8Array {
    return this.#range.root();
  }

  /** Brings the edge forward to `size` at least. Callers that come meanwhile wait, and read what is left. */
  async forward(size: number, read: ReadLeaves): Promise<void> {
    while (this.#range.size < size) {
      if (this.#forwarding !== null) {
        // A failure is that of the caller that reads: it may have hung up.
        await this.#forwarding.catch(() => {});
        continue;
      }
      this.#forwarding = this.#append(size, read);
      try {
        await this.#forwarding;
      } finally {
        this.#forwarding = null;
      }
    }
  }

  async #append(size: number, read: ReadLeaves): Promise<void> {
    const from = this.#range.size;
    this.#waiting = [];
    try {
      const leaves = await read(from, size);
      // Some may have been committed meanwhile: the store shows them before this is told of them.
      for (const [at, leaf] of leaves.entries()) if (from + at === this.#range.size) this.#range.append(leaf);
    } finally {
      const waiting = this.#waiting;
      this.#waiting = null;
      for (const { index, leaf } of waiting) this.committed(index, leaf);
    }
  }
}
