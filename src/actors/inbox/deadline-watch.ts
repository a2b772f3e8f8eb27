import type { Clock } from '../../runtime/clock/clock.ts';
import { Slab } from '../../runtime/collections/slab.ts';
import { deadlineCheckMs } from '../bounds.ts';

/** Calls functions of busy actors every deadlineCheckMs. One timer for all costs less than one a batch. */
export class DeadlineWatch {
  readonly #clock: Clock;
  readonly #looks = new Slab<() => void>();
  /** null while nothing is busy and no timer runs. */
  #cancel: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `look` every deadlineCheckMs until the returned function is called. Call that once. */
  begin(look: () => void): () => void {
    const slot = this.#looks.add(look);
    if (this.#cancel === null) this.#arm();
    return () => {
      this.#looks.remove(slot);
      if (this.#looks.size > 0) return;
      this.#cancel?.();
      this.#cancel = null;
    };
  }

  #arm(): void {
    this.#cancel = this.#clock.after(deadlineCheckMs, () => {
      this.#arm();
      for (const look of this.#looks) look();
    });
  }
}
