import type { Clock } from '../../actors/clock.ts';
import { RecentMap } from '../../domain/recent-map.ts';
import type { Log } from '../../log.ts';
import type { Pace } from '../pacing/pace.ts';

/** Ledgers asked about at once. */
const ledgersAtOnce = 8;
/** Ledgers remembered; another one is asked about again, which is a read if its actor is in memory. */
const ledgersMax = 20_000;
/** After a failure of the store. */
const retryMs = 1_000;
/** Main thread: a claim. */
const claimCostMs = 0.5;

export interface LedgerCertaintyParts {
  readonly pace: Pace;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether this node follows the ledger. */
  ownsShardOf(ledgerId: string): boolean;
  /** The newest seq that this node has answered lately; null: none. */
  newestAnswered(ledgerId: string): number | null;
  /** Has the ledger's own actor on this node make certain what stands in it; the newest seq. */
  readBarrier(ledgerId: string): Promise<number>;
  /** More of the ledger is certain now than before. */
  certain(ledgerId: string): void;
}

/**
 * How far it is certain what stands in the ledgers of this node. What it has answered itself is. Of what others have written, or itself
 * before it was started, the log may show events whose projections are not there yet: nobody may read them then, those whom they let in
 * least of all. And what nobody could say of a write may yet come to stand without being told. Such a ledger's own actor is asked, which
 * claims it if it has to.
 */
export class LedgerBarriers {
  readonly #parts: LedgerCertaintyParts;
  readonly #certain = new RecentMap<string, number>(ledgersMax);
  readonly #waiting = new Set<string>();
  readonly #asking = new Set<string>();
  #stopped = false;

  constructor(parts: LedgerCertaintyParts) {
    this.#parts = parts;
  }

  /** Whether all events of the ledger up to this one are certain. */
  reaches(ledgerId: string, seq: number): boolean {
    return Math.max(this.#parts.newestAnswered(ledgerId) ?? -1, this.#certain.get(ledgerId) ?? -1) >= seq;
  }

  /** Has it made certain what stands in the ledger, sooner or later; `certain` tells when it is. */
  ask(ledgerId: string): void {
    if (this.#stopped || this.#asking.has(ledgerId)) return;
    this.#waiting.add(ledgerId);
    this.#askNext();
  }

  stop(): void {
    this.#stopped = true;
    this.#waiting.clear();
  }

  #askNext(): void {
    for (const ledgerId of this.#waiting) {
      if (this.#asking.size >= ledgersAtOnce) return;
      this.#waiting.delete(ledgerId);
      this.#asking.add(ledgerId);
      void this.#askActor(ledgerId);
    }
  }

  async #askActor(ledgerId: string): Promise<void> {
    const { pace, clock, log, ownsShardOf, readBarrier, certain } = this.#parts;
    try {
      await pace.take(claimCostMs);
      if (ownsShardOf(ledgerId) && !this.#stopped) {
        this.#certain.set(ledgerId, await readBarrier(ledgerId));
        certain(ledgerId);
      }
    } catch (error) {
      log.warn({ err: error, ledger_id: ledgerId }, 'what stands in a ledger is not certain yet; it is asked again');
      clock.after(retryMs, () => this.ask(ledgerId));
    }
    this.#asking.delete(ledgerId);
    this.#askNext();
  }
}
