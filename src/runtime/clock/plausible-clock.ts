import { StartError } from '../start-error.ts';
import type { Clock } from './clock.ts';

/** From before this service was made to the end of the century. */
const plausible = { fromMs: Date.UTC(2020, 0, 1), toMs: Date.UTC(2100, 0, 1) };

export function isPlausibleTime(timeMs: number): boolean {
  return timeMs >= plausible.fromMs && timeMs < plausible.toMs;
}

export function implausibleClock(timeMs: number): string {
  const year = new Date(timeMs).getUTCFullYear();
  const where = Number.isNaN(year) ? 'no date' : `the year ${year}`;
  return `the clock of this machine is out of range (${where}): set it, and mend time synchronisation`;
}

/**
 * Goes on from the last good time while the machine's clock is implausible, so that nothing is dated, swept or
 * forgotten by a wrong time. The machine's clock must be plausible at the start.
 */
export class PlausibleClock implements Clock {
  readonly #wall: Clock;
  readonly #monotonicMs: () => number;
  #good: { readonly timeMs: number; readonly monotonicMs: number };

  constructor(wall: Clock, monotonicMs: () => number) {
    this.#wall = wall;
    this.#monotonicMs = monotonicMs;
    this.#good = { timeMs: wall.now(), monotonicMs: monotonicMs() };
  }

  now(): number {
    const timeMs = this.#wall.now();
    const monotonicMs = this.#monotonicMs();
    if (isPlausibleTime(timeMs)) {
      this.#good = { timeMs, monotonicMs };
      return timeMs;
    }
    return Math.floor(this.#good.timeMs + monotonicMs - this.#good.monotonicMs);
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#wall.after(delayMs, run);
  }
}

/** Throws StartError if the machine's clock is implausible. */
export function goodClock(wall: Clock): PlausibleClock {
  if (!isPlausibleTime(wall.now())) throw new StartError(`The node does not start: ${implausibleClock(wall.now())}.`);
  return new PlausibleClock(wall, () => performance.now());
}
