import type { Clock } from '../../runtime/clock/clock.ts';
import { attemptTimeoutMs } from '../post/http-post.ts';

/** Returns how many slots are given `apartMs` apart: as many as fit into the time of one attempt. */
export function givenApart(apartMs: number): number {
  return Math.ceil(attemptTimeoutMs / apartMs);
}

/**
 * Concurrency slots for attempts, each of which may last until its timeout. The last slots are given `apartMs` apart:
 * by the time that all of them are held, the first one has been given back. So a slot is given every `apartMs`, even if
 * no attempt is ever answered.
 */
export class Slots {
  readonly #max: number;
  readonly #apartMs: number;
  /** How many slots are given without a pause. */
  readonly #atOnce: number;
  readonly #clock: Clock;
  /** Called at the end of each pause, when a slot may be given again. */
  readonly #freed: () => void;
  #held = 0;
  #isResting = false;

  constructor(max: number, apartMs: number, clock: Clock, freed: () => void) {
    this.#max = max;
    this.#apartMs = apartMs;
    this.#atOnce = max - givenApart(apartMs);
    this.#clock = clock;
    this.#freed = freed;
  }

  get hasOne(): boolean {
    return this.#held < this.#atOnce || (this.#held < this.#max && !this.#isResting);
  }

  take(): void {
    if (this.#held >= this.#atOnce) this.#rest();
    this.#held += 1;
  }

  giveBack(): void {
    this.#held -= 1;
  }

  #rest(): void {
    this.#isResting = true;
    this.#clock.after(this.#apartMs, () => {
      this.#isResting = false;
      this.#freed();
    });
  }
}
