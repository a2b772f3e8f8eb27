import { startWindowMs } from './subscription-start.ts';

/** Twice the window: an event may be dated ahead of this node's clock. */
const keptMs = 2 * startWindowMs;
/** For other ledgers, a new subscription may also get events answered just before it. */
const ledgersMax = 20_000;

/** Writes in flight, and the newest seq that each ledger has answered lately: a new subscription begins after it. */
export class InFlightWrites {
  readonly #now: () => number;
  readonly #underWay = new Map<string, number>();
  readonly #answered = new Map<string, { readonly seq: number; readonly atMs: number }>();

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

  /** The first seq that is not answered yet though the log may show it. null: nothing is being written. */
  underWayFrom(ledgerId: string): number | null {
    return this.#underWay.get(ledgerId) ?? null;
  }

  newestAnswered(ledgerId: string): number | null {
    return this.#answered.get(ledgerId)?.seq ?? null;
  }

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
