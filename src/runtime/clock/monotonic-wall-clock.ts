import type { Clock } from './clock.ts';

/** Not 0, so that timers still find the time that they were set for; less than 1, so that the clocks meet again. */
const speedAhead = 0.5;

/** Never goes back: runs at half speed after the other clock was set back, until that one has caught up. */
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

  /** Moves the clock forward to at least `timeMs`. Returns how far it then is ahead of the other clock, ms. */
  notBefore(timeMs: number): number {
    this.#nowMs = Math.max(this.now(), timeMs);
    return this.#nowMs - this.#wall.now();
  }
}
