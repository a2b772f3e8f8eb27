import type { Clock } from '../../actors/clock.ts';
import { attemptTimeoutMs } from '../posting/http-post.ts';

/** How many slots are given so far apart: as many as can be while one attempt lasts. */
export function givenApart(apartMs: number): number {
  return Math.ceil(attemptTimeoutMs / apartMs);
}

/**
 * Slots for attempts that may each last as long as an attempt can. The last ones are given `apartMs` apart: by the time that they are
 * all held, the first of them has come back. So however many attempts are never answered, a slot is given every `apartMs`.
 */
export class Slots {
  readonly #max: number;
  readonly #apartMs: number;
  /** Of so many, each is given at once. */
  readonly #atOnce: number;
  readonly #clock: Clock;
  /** One can be given again. */
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
