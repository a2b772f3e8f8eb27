import type { Clock } from '../../runtime/clock/clock.ts';

/** Looks at intervals, from `begin` on for as long as `look` returns true. */
export class RepeatedLook implements Disposable {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #look: () => boolean;
  #cancel: (() => void) | null = null;

  constructor(clock: Clock, everyMs: number, look: () => boolean) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#look = look;
  }

  /** Does nothing if the next look is due already. */
  begin(): void {
    this.#cancel ??= this.#clock.after(this.#everyMs, () => {
      this.#cancel = null;
      if (this.#look()) this.begin();
    });
  }

  [Symbol.dispose](): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}
