/** The seeds of a fuzzer's run: those of its corpus, then one after the other from a random one on. */
export class FuzzSeeds {
  readonly #corpus: readonly number[];
  readonly #first = Math.floor(Math.random() * 1_000_000_000);
  /** The only seed; null: all. */
  readonly #replayed: number | null;
  #count = 0;

  /** `replayed`: FUZZ_SEED, the seed that runs alone, again and again. */
  constructor(corpus: readonly number[] = [], replayed: string | null = process.env.FUZZ_SEED ?? null) {
    this.#corpus = corpus;
    this.#replayed = replayed === null ? null : Number(replayed);
    if (replayed === '' || (this.#replayed !== null && !Number.isSafeInteger(this.#replayed)))
      throw new Error(`FUZZ_SEED must be a whole number: ${replayed}`);
  }

  /** Whether one seed is replayed. */
  get isOne(): boolean {
    return this.#replayed !== null;
  }

  get count(): number {
    return this.#count;
  }

  next(): number {
    const at = this.#count++;
    return this.#replayed ?? this.#corpus[at] ?? this.#first + at - this.#corpus.length;
  }

  /** For the messages of failures: the seeds that have run, or that will run. */
  toString(): string {
    if (this.#replayed !== null) return `seed ${this.#replayed}`;
    const counted = this.#count - this.#corpus.length;
    const range = counted > 0 ? `${this.#first} to ${this.#first + counted - 1}` : `${this.#first} and on`;
    return `seeds ${[...this.#corpus, range].join(', ')} (FUZZ_SEED=… replays one)`;
  }
}
