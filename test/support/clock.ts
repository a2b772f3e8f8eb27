import type { Clock } from '../../src/runtime/clock/clock.ts';
import { MonotonicWallClock } from '../../src/runtime/clock/monotonic-wall-clock.ts';

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #nowMs: number;
  #timers: Timer[] = [];

  constructor(startMs: number) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    const timer = { at: this.#nowMs + delayMs, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  get timers(): number {
    return this.#timers.length;
  }

  /** Another time at once, earlier ones too; what was to happen in between does not. */
  jump(byMs: number): void {
    this.#nowMs += byMs;
  }

  /** Lets time pass: timers run when they are due, one after the other, with all that follows from each. */
  async advance(byMs: number): Promise<void> {
    const end = this.#nowMs + byMs;
    await settled();
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.#nowMs = Math.max(this.#nowMs, due.at);
      due.run();
      await settled();
    }
    this.#nowMs = end;
  }
}

/** The same as a node that stands alone tells it: a jump sets the machine's clock, and this one never goes back. */
export class ManualForwardClock extends ManualClock {
  readonly #told: MonotonicWallClock;
  #jumpedMs = 0;

  constructor(startMs: number) {
    super(startMs);
    const wall = { now: () => super.now(), after: () => () => {} };
    this.#told = new MonotonicWallClock(wall, () => super.now() - this.#jumpedMs);
  }

  override now(): number {
    return this.#told.now();
  }

  override jump(byMs: number): void {
    this.#jumpedMs += byMs;
    super.jump(byMs);
  }
}

/** Resolves when everything that waits for nothing but promises has gone on. */
export function settled(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
