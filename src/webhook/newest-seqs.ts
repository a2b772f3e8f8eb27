/** Twice the slack that a subscription takes events with from before it was made. */
const keptMs = 2_000;

/** The newest seq of every ledger that was written to a moment ago. In the order of time, so that what is too old stands first. */
export class NewestSeqs {
  readonly #now: () => number;
  readonly #ledgers = new Map<string, { readonly seq: number; readonly atMs: number }>();

  /** `now` in milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  note(ledgerId: string, seq: number): void {
    this.#ledgers.delete(ledgerId);
    this.#ledgers.set(ledgerId, { seq, atMs: this.#now() });
    this.#forgetOld();
  }

  all(): ReadonlyMap<string, number> {
    this.#forgetOld();
    return new Map([...this.#ledgers].map(([ledgerId, { seq }]) => [ledgerId, seq]));
  }

  #forgetOld(): void {
    const before = this.#now() - keptMs;
    for (const [ledgerId, { atMs }] of this.#ledgers) {
      if (atMs >= before) return;
      this.#ledgers.delete(ledgerId);
    }
  }
}
