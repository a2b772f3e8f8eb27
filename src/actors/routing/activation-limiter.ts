import { LedgerError } from '../../domain/errors.ts';
import type { Clock } from '../../runtime/clock/clock.ts';
import { limits } from '../../runtime/limits/limits.ts';

/** After a quiet time, so many milliseconds of loads may come at once. */
const burstMs = 250;

/** Limits how many ledgers are loaded in a second, so that those of a lost node do not all load at once. */
export class ActivationLimiter {
  readonly #clock: Clock;
  readonly #everyMs: number;
  #lastAt = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#everyMs = 1_000 / perSecond;
  }

  /** null: the ledger may load at once. Throws `unavailable` if it may only load after `deadline` (ms since 1970). */
  take(ledgerId: string, deadline: number): Promise<void> | null {
    const together = this.#waiting.get(ledgerId);
    if (together !== undefined) return together;
    const now = this.#clock.now();
    // Loads are admitted up to a call's time ahead. What lies further ahead was admitted before the clock was set back.
    const last = this.#lastAt > now + limits.callTimeoutMs ? now : this.#lastAt;
    const at = Math.max(last + this.#everyMs, now - burstMs);
    if (at > now && at >= deadline)
      throw new LedgerError('unavailable', 'This node has many ledgers to load first; nothing was written, retry.');
    this.#lastAt = at;
    if (at <= now) return null;
    const admitted = new Promise<void>((resolve) => void this.#clock.after(at - now, resolve)).finally(() =>
      this.#waiting.delete(ledgerId),
    );
    this.#waiting.set(ledgerId, admitted);
    return admitted;
  }
}
