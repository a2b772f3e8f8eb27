/** Heads that were learned within this time of each other count as learned at once, ms. */
const atOnceMs = 20;
/** Beyond so many heads, later ones count as learned with the last one. */
const headsMax = 1_024;

interface LearnedHead {
  seq: number;
  readonly learnedMs: number;
}

/** When a node learned of the heads of a ledger that its tail has not read yet. */
export class LearnedHeads {
  /** In ascending order of both. */
  readonly #heads: LearnedHead[] = [];

  learned(seq: number, learnedMs: number): void {
    const last = this.#heads.at(-1);
    const isJoined = last !== undefined && (learnedMs - last.learnedMs < atOnceMs || this.#heads.length >= headsMax);
    if (isJoined) last.seq = seq;
    else this.#heads.push({ seq, learnedMs });
  }

  /** When the event of this seq was learned to be durable (monotonic, ms). null: it is not known. */
  learnedMs(seq: number): number | null {
    return this.#heads.find((head) => head.seq >= seq)?.learnedMs ?? null;
  }

  /** The tail has read the events up to this seq. */
  forget(throughSeq: number): void {
    const kept = this.#heads.findIndex(({ seq }) => seq > throughSeq);
    this.#heads.splice(0, kept === -1 ? this.#heads.length : kept);
  }
}
