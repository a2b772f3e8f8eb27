import type { Clock } from '../../runtime/clock/clock.ts';
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
    if (this.#cancel === null) this.#arm();
    return () => {
      this.#checks.remove(slot);
      if (this.#checks.size > 0) return;
      this.#cancel?.();
      this.#cancel = null;
    };
  }

  #arm(): void {
    this.#cancel = this.#clock.after(deadlineCheckMs, () => {
      this.#arm();
      for (const check of this.#checks) check();
    });
  }
}
