import type { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import { RecentMap } from '../../runtime/collections/recent-map.ts';
import type { Log } from '../../runtime/telemetry/log.ts';

const ledgersAtOnce = 8;
/** A forgotten ledger needs another barrier: a read, if its actor is in memory. */
const ledgersMax = 20_000;
/** Pause after a failure of the store. */
const retryMs = 1_000;
const claimCostMs = 0.5;

interface LedgerBarriersParts {
  readonly limiter: BackgroundLimiter;
  readonly clock: Clock;
  readonly log: Log;
  ownsShardOf(ledgerId: string): boolean;
  /** The newest seq that this node has answered lately. */
  newestAnswered(ledgerId: string): number | null;
  /** See LedgerActor. */
  readBarrier(ledgerId: string): Promise<number>;
  certain(ledgerId: string): void;
}

/**
 * Up to which seq the events of this node's ledgers are certain. Those that this node has answered are. The log may
 * also show events of another node, or of this one before it started, whose projections are not stored yet: access to
 * them cannot be checked. And a write with an unknown outcome may still land. A read barrier settles both.
 */
export class LedgerBarriers {
  readonly #parts: LedgerBarriersParts;
  readonly #certain = new RecentMap<string, number>(ledgersMax);
  readonly #waiting = new Set<string>();
  readonly #asking = new Set<string>();
  #stopped = false;

  constructor(parts: LedgerBarriersParts) {
    this.#parts = parts;
  }

  reaches(ledgerId: string, seq: number): boolean {
    return Math.max(this.#parts.newestAnswered(ledgerId) ?? -1, this.#certain.get(ledgerId) ?? -1) >= seq;
  }

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
    const { limiter, clock, log, ownsShardOf, readBarrier, certain } = this.#parts;
    try {
      await limiter.take(claimCostMs);
      if (ownsShardOf(ledgerId) && !this.#stopped) {
        this.#certain.set(ledgerId, await readBarrier(ledgerId));
        certain(ledgerId);
      }
    } catch (error) {
      log.warn({ err: error, ledger_id: ledgerId }, 'a read barrier of a ledger failed; it is tried again');
      clock.after(retryMs, () => this.ask(ledgerId));
    }
    this.#asking.delete(ledgerId);
    this.#askNext();
  }
}
