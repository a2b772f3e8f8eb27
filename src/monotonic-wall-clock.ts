import type { Clock } from './actors/clock.ts';

/** While it is ahead of the machine's clock it goes this fast, so that the two meet again and timers still find what they were set for. */
const speedAhead = 0.5;

/**
 * A clock that never goes back, over one that may be set back: it goes on at half speed until the other has caught up. What was answered
 * earlier is then never dated later, and dates tell which events came after a subscription (decisions.md, section 5).
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

  /** From here on it is not earlier than this (ms since 1970). Answers how far ahead of the other clock that puts it, in milliseconds. */
  notBefore(timeMs: number): number {
    this.#nowMs = Math.max(this.now(), timeMs);
    return this.#nowMs - this.#wall.now();
  }
}
