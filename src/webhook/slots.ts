import type { Clock } from '../actors/clock.ts';
import { attemptTimeoutMs } from './attempt.ts';

/** How long apart the last slots are given. */
export const slotsApartMs = 1_000;
/** As many as can be given so far apart while one attempt lasts. */
const slowlyGiven = Math.ceil(attemptTimeoutMs / slotsApartMs);

/**
 * Slots for attempts that may each last as long as an attempt can. The last ones are given a second apart: by the time that they are all
 * held, those that were given before have come back. So however many attempts are never answered, nobody has to wait longer than a second
 * for a slot to be given.
 */
export class Slots {
  readonly #max: number;
  readonly #clock: Clock;
  /** One can be given again. */
  readonly #freed: () => void;
  #held = 0;
  #isResting = false;

  constructor(max: number, clock: Clock, freed: () => void) {
    this.#max = max;
    this.#clock = clock;
    this.#freed = freed;
  }

  get hasOne(): boolean {
    return this.#held < this.#max - slowlyGiven || (this.#held < this.#max && !this.#isResting);
  }

  take(): void {
    if (this.#held >= this.#max - slowlyGiven) this.#rest();
    this.#held += 1;
  }

  giveBack(): void {
    this.#held -= 1;
  }

  #rest(): void {
    this.#isResting = true;
    this.#clock.after(slotsApartMs, () => {
      this.#isResting = false;
      this.#freed();
    });
  }
}
