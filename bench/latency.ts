/** Buckets for each doubling of time: a percentile is right to about 1 %. */
const bucketsADoubling = 64;
const doublings = 40;

/** Latencies in buckets, so that a million of them take no memory. */
export class LatencyHistogram {
  readonly #counts = new Uint32Array(bucketsADoubling * doublings);
  #total = 0;

  /** `microseconds` of a clock that does not go back. */
  record(microseconds: number): void {
    const bucket = Math.floor(Math.log2(Math.max(1, microseconds)) * bucketsADoubling);
    const at = Math.min(bucket, this.#counts.length - 1);
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#total += 1;
  }

  /** Counts by bucket, for `add`. */
  counts(): number[] {
    return Array.from(this.#counts);
  }

  /** Adds what another process has counted. */
  add(counts: readonly number[]): void {
    for (const [at, count] of counts.entries()) {
      this.#counts[at] = (this.#counts[at] ?? 0) + count;
      this.#total += count;
    }
  }

  /** The time, in milliseconds, below which this share of all latencies lies. */
  percentileMs(share: number): number {
    let seen = 0;
    for (let at = 0; at < this.#counts.length; at++) {
      seen += this.#counts[at] ?? 0;
      if (seen >= share * this.#total) return 2 ** ((at + 1) / bucketsADoubling) / 1_000;
    }
    return 0;
  }
}
