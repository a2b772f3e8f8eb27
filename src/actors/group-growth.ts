import type { Clock } from './clock.ts';

/** Sees whether a group of commands still grows while its turn waits: callers that all wait for their answers send no more. */
export class GroupGrowth {
  readonly #clock: Clock;
  readonly #quietMs: number;
  #size = 0;
  #grownAt: number;

  /** `quietMs`: a group that nothing has joined for so long does not grow any more. */
  constructor(clock: Clock, quietMs: number) {
    this.#clock = clock;
    this.#quietMs = quietMs;
    this.#grownAt = clock.now();
  }

  /** Whether it has ended, now that there are so many. */
  hasEnded(size: number): boolean {
    const now = this.#clock.now();
    if (size > this.#size || now < this.#grownAt) {
      this.#size = size;
      this.#grownAt = now;
    }
    return now - this.#grownAt >= this.#quietMs;
  }
}
