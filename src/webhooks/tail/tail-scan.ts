import type { BackgroundLimiter } from '../../runtime/background-limiter.ts';
import type { Log } from '../../runtime/telemetry/log.ts';

const ledgersARoundMax = 2_000;
const scanCostMs = 0.1;
/** Ledgers of other nodes that are skipped without a pause. */
const passedAtOnce = 500;

interface TailScanParts {
  readonly limiter: BackgroundLimiter;
  readonly log: Log;
  /** May change during the iteration. */
  watchedLedgers(): Iterable<string>;
  ownsShardOf(ledgerId: string): boolean;
  scanLedger(ledgerId: string): Promise<void>;
}

/** Scans the watched ledgers of this node for events of a node that could not reach this one. */
export class TailScan {
  readonly #parts: TailScanParts;
  #walk: Iterator<string> | null = null;
  #underWay: Promise<void> | null = null;
  #stopped = false;

  constructor(parts: TailScanParts) {
    this.#parts = parts;
  }

  /** Runs one round, unless one runs already. Never rejects. */
  async round(): Promise<void> {
    if (this.#underWay !== null || this.#stopped) return;
    this.#underWay = this.#scanRound().catch((error) =>
      this.#parts.log.warn({ err: error }, 'looking at watched ledgers failed; the next round goes on'),
    );
    await this.#underWay;
    this.#underWay = null;
  }

  /** Resolves when the ledger in progress is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#underWay;
  }

  async #scanRound(): Promise<void> {
    const { limiter, ownsShardOf, scanLedger, watchedLedgers } = this.#parts;
    this.#walk ??= watchedLedgers()[Symbol.iterator]();
    for (let scanned = 0, passed = 0; scanned < ledgersARoundMax; ) {
      const { value: ledgerId, done } = this.#walk.next();
      if (done) {
        this.#walk = null;
        return;
      }
      const isOwned = ownsShardOf(ledgerId);
      if (!isOwned && ++passed % passedAtOnce !== 0) continue;
      await limiter.take(scanCostMs);
      if (this.#stopped) return;
      if (!isOwned) continue;
      scanned += 1;
      await scanLedger(ledgerId);
    }
  }
}
