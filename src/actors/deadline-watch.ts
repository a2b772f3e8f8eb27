import { Slab } from '../domain/slab.ts';
import { deadlineCheckMs } from './bounds.ts';
import type { Clock } from './clock.ts';

/** Looks at everything that is busy every deadlineCheckMs, by one timer for all: a timer for each turn of each actor costs more than the look. */
export class DeadlineWatch {
  readonly #clock: Clock;
  readonly #looks = new Slab<() => void>();
  /** null: nothing is busy, and no timer runs. */
  #cancel: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `look` from time to time until the function that it gives back is called, once. */
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
