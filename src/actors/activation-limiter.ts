import { LedgerError } from '../domain/errors.ts';
import type { Clock } from './clock.ts';

/** A burst of this length may come at once after a quiet time. */
const burstMs = 250;

/**
 * Limits how many ledgers come into memory in a second, so that those of a lost node do not all load at once. Commands of one ledger
 * wait together and go on in the order in which they came.
 */
export class ActivationLimiter {
  readonly #clock: Clock;
  readonly #everyMs: number;
  #lastAt = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(clock: Clock, perSecond: number) {
    this.#clock = clock;
    this.#everyMs = 1_000 / perSecond;
  }

  /** null: go on at once. Throws `unavailable` where the ledger's turn would come after the deadline (milliseconds since 1970). */
  take(ledgerId: string, deadline: number): Promise<void> | null {
    const together = this.#waiting.get(ledgerId);
    if (together !== undefined) return together;
    const now = this.#clock.now();
    // A clock that went back must not make the next turn lie far ahead.
    const last = Math.min(this.#lastAt, now + this.#everyMs * 10_000);
    const at = Math.max(last + this.#everyMs, now - burstMs);
    if (at > now && at >= deadline) throw tooMany();
    this.#lastAt = at;
    if (at <= now) return null;
    const turn = new Promise<void>((resolve) => void this.#clock.after(at - now, resolve)).finally(() =>
      this.#waiting.delete(ledgerId),
    );
    this.#waiting.set(ledgerId, turn);
    return turn;
  }
}

function tooMany(): LedgerError {
  return new LedgerError('unavailable', 'This node has many ledgers to load first; nothing was written, retry.');
}
