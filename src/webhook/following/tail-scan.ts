import type { Log } from '../../log.ts';
import type { Pace } from '../pacing/pace.ts';

/** Looked at in one round; the next one goes on behind them. */
const ledgersARoundMax = 2_000;
/** Main thread: reading a head, and now and then a cursor. */
const lookCostMs = 0.1;
/** Ledgers of other nodes passed over in one go. */
const passedAtOnce = 500;

export interface LedgerLookParts {
  readonly pace: Pace;
  readonly log: Log;
  /** May change while it is walked through. */
  watchedLedgers(): Iterable<string>;
  /** Whether this node follows the ledger. */
  ownsShardOf(ledgerId: string): boolean;
  /** Looks at one ledger. */
  look(ledgerId: string): Promise<void>;
}

/**
 * Looks through the watched ledgers of this node, one at a time, for events that nobody here was told of: a node that could not reach this
 * one may have carried a command out itself.
 */
export class TailScan {
  readonly #parts: LedgerLookParts;
  #walk: Iterator<string> | null = null;
  #underWay: Promise<void> | null = null;
  #stopped = false;

  constructor(parts: LedgerLookParts) {
    this.#parts = parts;
  }

  /** Goes on through the ledgers, unless that is under way. Resolves when the round is over; never rejects. */
  async round(): Promise<void> {
    if (this.#underWay !== null || this.#stopped) return;
    this.#underWay = this.#goOn().catch((error) =>
      this.#parts.log.warn({ err: error }, 'looking at watched ledgers failed; the next round goes on'),
    );
    await this.#underWay;
    this.#underWay = null;
  }

  /** Begins nothing new; resolves when the ledger under way has been looked at. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#underWay;
  }

  async #goOn(): Promise<void> {
    const { pace, ownsShardOf, look, watchedLedgers } = this.#parts;
    this.#walk ??= watchedLedgers()[Symbol.iterator]();
    for (let looked = 0, passed = 0; looked < ledgersARoundMax; ) {
      const { value: ledgerId, done } = this.#walk.next();
      if (done) {
        this.#walk = null;
        return;
      }
      const isOwned = ownsShardOf(ledgerId);
      if (!isOwned && ++passed % passedAtOnce !== 0) continue;
      await pace.take(lookCostMs);
      if (this.#stopped) return;
      if (!isOwned) continue;
      looked += 1;
      await look(ledgerId);
    }
  }
}
