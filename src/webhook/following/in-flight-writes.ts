import { startWindowMs } from './subscription-start.ts';

/** For twice as long: an event may be dated ahead of this node's clock. */
const keptMs = 2 * startWindowMs;
/** Ledgers remembered; of others a subscription may get what was answered just before it, and misses nothing. */
const ledgersMax = 20_000;

/**
 * What the ledgers of this node are writing, and the newest seq that each has answered as long ago as an event may still be for a new
 * subscription. In the order of time, so that what is too old stands first.
 */
export class InFlightWrites {
  readonly #now: () => number;
  readonly #underWay = new Map<string, number>();
  readonly #answered = new Map<string, { readonly seq: number; readonly atMs: number }>();

  /** `now` in milliseconds since 1970. */
  constructor(now: () => number) {
    this.#now = now;
  }

  writing(ledgerId: string, fromSeq: number): void {
    this.#underWay.set(ledgerId, fromSeq);
  }

  settled(ledgerId: string): void {
    this.#underWay.delete(ledgerId);
  }

  committed(ledgerId: string, seq: number): void {
    this.#answered.delete(ledgerId);
    this.#answered.set(ledgerId, { seq, atMs: this.#now() });
    this.#forgetOld();
  }

  /** The first seq that is not answered yet though the log may show it; null: nothing is being written. */
  underWayFrom(ledgerId: string): number | null {
    return this.#underWay.get(ledgerId) ?? null;
  }

  /** null: none lately. */
  newestAnswered(ledgerId: string): number | null {
    return this.#answered.get(ledgerId)?.seq ?? null;
  }

  /** Ledgers in the order of their newest answers, at most `limit`, the newest ones. */
  lately(limit: number): string[] {
    return [...this.#answered.keys()].slice(-limit);
  }

  #forgetOld(): void {
    const before = this.#now() - keptMs;
    for (const [ledgerId, { atMs }] of this.#answered) {
      if (atMs >= before && this.#answered.size <= ledgersMax) return;
      this.#answered.delete(ledgerId);
    }
  }
}
