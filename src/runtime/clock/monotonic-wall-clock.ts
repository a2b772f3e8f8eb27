import type { Clock } from './clock.ts';

/**
 * The speed while this clock is ahead of the machine's. Not 0, so that timers still find the time that they were set
 * for; less than 1, so that the clocks meet again.
 */
const speedAhead = 0.5;

/**
 * A clock that never goes back, over a clock that may be set back. Then it runs at half speed until the other clock has
 * caught up. So an event that was answered earlier is never dated later, and dates tell which events came after a
 * subscription.
 */
export class MonotonicWallClock implements Clock {
  readonly #wall: Clock;
  readonly #monotonicMs: () => number;
  #nowMs: number;
  #lookedMs: number;

  constructor(wall: Clock, monotonicMs: () => number) {
    this.#wall = wall;
    this.#monotonicMs = monotonicMs;
    this.#nowMs = wall.now();
    this.#lookedMs = monotonicMs();
  }

  now(): number {
    const lookedMs = this.#monotonicMs();
    const carriedMs = this.#nowMs + (lookedMs - this.#lookedMs) * speedAhead;
    this.#lookedMs = lookedMs;
    this.#nowMs = Math.max(this.#wall.now(), carriedMs);
    return Math.floor(this.#nowMs);
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#wall.after(delayMs, run);
  }

  /**
   * Moves the clock forward to at least `timeMs` (ms since 1970). Returns how far it then is ahead of the other clock,
   * ms.
   */
  notBefore(timeMs: number): number {
    this.#nowMs = Math.max(this.now(), timeMs);
    return this.#nowMs - this.#wall.now();
  }
}
