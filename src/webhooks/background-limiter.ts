import { type Clock, sleep } from '../runtime/clock/clock.ts';

/** How often the utilization is sampled. */
const sampleMs = 100;
/**
 * Appends fill the machine if the utilization in a sample is above this and ledgers are written to at this rate or
 * more. Fewer events fill no machine.
 */
const busyUtilization = 0.85;
const busyEventsPerSecond = 500;
/** A full machine has idle moments too. It counts as full until all samples of this time were below the limit, ms. */
const calmAfterMs = 500;
/** The share of this thread's processor time that fanning out and sending may take while the machine is full. */
const busyShare = 0.015;
/** The most processor time that may be saved up, ms. A longer burst would delay appends. */
const savedMaxMs = 5;

export interface BackgroundLimiterParts {
  readonly clock: Clock;
  /** How busy the event loop or the machine was since the last call: 0 to 1. */
  utilization(): number;
  /** A clock that never goes back, ms. */
  monotonicMs(): number;
  /** Processor time of this thread, ms. It is less than the elapsed time if other programs run too. */
  processorMs(): number;
}

/**
 * Limits background work (fanning out and sending), which runs on the processors that appends need.
 *
 * Appends alone could fill the processors if the event loop or the machine was busier than 85 % in one of the 100 ms
 * samples of the last half second, and many events are being written. Then background work gets 1.5 % of this thread's
 * processor time, and the log keeps what waits. Otherwise background work runs as fast as its own limits allow: a
 * machine that is busy while few events are appended is busy with deliveries.
 *
 * Callers pass the cost of each piece of work, as measured on a quiet machine: it cannot be measured while the work
 * waits for sockets and disks.
 */
export class BackgroundLimiter {
  readonly #parts: BackgroundLimiterParts;
  #sampledAt: number;
  #events = 0;
  #isBusy = false;
  #busyUntil = Number.NEGATIVE_INFINITY;
  #savedMs = 0;
  #savedAt: number;

  constructor(parts: BackgroundLimiterParts) {
    this.#parts = parts;
    this.#sampledAt = parts.monotonicMs();
    this.#savedAt = parts.processorMs();
  }

  /** So many events were written to a ledger. */
  committed(events: number): void {
    this.#events += events;
  }

  /**
   * Returns how long to wait, ms, before asking again. 0: work of this cost may begin now, and is charged. `costMs`:
   * main thread time.
   */
  delayMs(costMs: number): number {
    const now = this.#parts.monotonicMs();
    const elapsedMs = now - this.#sampledAt;
    if (elapsedMs >= sampleMs) {
      const isAppending = this.#events >= (busyEventsPerSecond * elapsedMs) / 1_000;
      if (this.#parts.utilization() > busyUtilization && isAppending) this.#busyUntil = now + calmAfterMs;
      this.#isBusy = isAppending && now < this.#busyUntil;
      this.#events = 0;
      this.#sampledAt = now;
    }
    if (!this.#isBusy) return 0;
    const processorMs = this.#parts.processorMs();
    this.#savedMs = Math.min(savedMaxMs, this.#savedMs + (processorMs - this.#savedAt) * busyShare);
    this.#savedAt = processorMs;
    if (this.#savedMs < 0) return Math.ceil(Math.min(sampleMs, -this.#savedMs / busyShare));
    this.#savedMs -= costMs;
    return 0;
  }

  /**
   * Resolves when work of this cost may begin. It always yields to the event loop, so that other work goes first.
   */
  async take(costMs: number): Promise<void> {
    for (;;) {
      const waitMs = this.delayMs(costMs);
      if (waitMs === 0) return new Promise((resolve) => void setImmediate(resolve));
      await sleep(this.#parts.clock, waitMs);
    }
  }
}
