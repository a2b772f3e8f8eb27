import type { Clock } from './actors/clock.ts';

/** Of a node that stands alone: nobody else tells the time, so the two may take what they need to meet again. */
const speedAheadDefault = 0.5;

/**
 * A clock that never goes back, over one that may be set back: it goes on more slowly until the other has caught up. What was answered
 * earlier is then never dated later, and dates tell which events came after a subscription (decisions.md, section 5).
 */
export class ForwardClock implements Clock {
  readonly #wall: Clock;
  readonly #monotonicMs: () => number;
  readonly #speedAhead: number;
  #nowMs: number;
  #lookedMs: number;

  /** `speedAhead`: how fast it goes, of the time that passes, while the machine's clock is behind it. Above 0, so that timers still find what they were set for. */
  constructor(wall: Clock, monotonicMs: () => number, speedAhead = speedAheadDefault) {
    this.#wall = wall;
    this.#monotonicMs = monotonicMs;
    this.#speedAhead = speedAhead;
    this.#nowMs = wall.now();
    this.#lookedMs = monotonicMs();
  }

  now(): number {
    const lookedMs = this.#monotonicMs();
    const carriedMs = this.#nowMs + (lookedMs - this.#lookedMs) * this.#speedAhead;
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
