import { type Clock, every } from '../../runtime/clock/clock.ts';
import { Slab } from '../../runtime/collections/slab.ts';
import { deadlineCheckMs } from '../bounds.ts';

/** Calls functions of busy actors every deadlineCheckMs. One timer for all costs less than one a batch. */
export class DeadlineWatch {
  readonly #clock: Clock;
  readonly #checks = new Slab<() => void>();
  /** null while nothing is busy and no timer runs. */
  #cancel: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `check` every deadlineCheckMs until the returned function is called. Call that once. */
  begin(check: () => void): () => void {
    const slot = this.#checks.add(check);
    this.#cancel ??= every(this.#clock, deadlineCheckMs, () => {
      for (const run of this.#checks) run();
    });
    return () => {
      this.#checks.remove(slot);
      if (this.#checks.size > 0) return;
      this.#cancel?.();
      this.#cancel = null;
    };
  }
}
