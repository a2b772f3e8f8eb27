import { type Clock, sleep } from './clock/clock.ts';

/** How often the utilization is sampled. */
const sampleMs = 100;
/** Appends fill the machine if a sample is above this while events are written at this rate. */
const busyUtilization = 0.85;
const busyEventsPerSecond = 500;
/** A full machine has idle moments too: it counts as full until all samples of this time were below the limit, ms. */
const calmAfterMs = 500;
/** The most processor time that is saved up, ms. A longer burst would delay appends. */
const savedMaxMs = 5;

export interface BackgroundLimiterParts {
  readonly clock: Clock;
  /** How busy the event loop or the machine was since the last call: 0 to 1. */
  utilization(): number;
  /** A clock that never goes back, ms. */
  monotonicMs(): number;
  /** Processor time of this thread, ms: less than the elapsed time if other programs run too. */
  processorMs(): number;
  /** The share of this thread's processor time for the work while appends fill the machine, 0 to 1. */
  readonly busyShare: number;
  /**
   * The share of the time for the work while the machine is full and few events are appended, 0 to 1. It is of elapsed
   * time: a thread that waits for other programs has hardly any processor time. No limit if left out.
   */
  readonly fullShare?: number;
}

/**
 * Limits work that can wait (deliveries of webhooks, events for followers) and runs on the processors that appends
 * need: while appends fill the machine it gets a small share of this thread's processor time, and the log keeps what
 * waits. A machine that is full while few events are appended may be full of this work, which gets `fullShare` then.
 * While nothing is appended there is no limit.
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
  #fullUntil = Number.NEGATIVE_INFINITY;
  #savedMs = 0;
  /** The processor time and the time when time was saved last. */
  #savedAt: number;
  #savedAtMs: number;

  constructor(parts: BackgroundLimiterParts) {
    this.#parts = parts;
    this.#sampledAt = parts.monotonicMs();
    this.#savedAt = parts.processorMs();
    this.#savedAtMs = this.#sampledAt;
  }

  committed(events: number): void {
    this.#events += events;
  }

  /** Returns how long to wait, ms, before asking again. 0: work of this cost (main thread time, ms) may begin now. */
  delayMs(costMs: number): number {
    const now = this.#parts.monotonicMs();
    const elapsedMs = now - this.#sampledAt;
    if (elapsedMs >= sampleMs) {
      const isAppending = this.#events >= (busyEventsPerSecond * elapsedMs) / 1_000;
      if (this.#parts.utilization() > busyUtilization && this.#events > 0) {
        this.#fullUntil = now + calmAfterMs;
        if (isAppending) this.#busyUntil = this.#fullUntil;
      }
      this.#isBusy = isAppending && now < this.#busyUntil;
      this.#events = 0;
      this.#sampledAt = now;
    }
    const { busyShare, fullShare } = this.#parts;
    const share = this.#isBusy ? busyShare : now < this.#fullUntil ? fullShare : undefined;
    if (share === undefined) return 0;
    this.#save(now, share);
    if (this.#savedMs < 0) return Math.ceil(Math.min(sampleMs, -this.#savedMs / share));
    this.#savedMs -= costMs;
    return 0;
  }

  #save(nowMs: number, share: number): void {
    const processorMs = this.#parts.processorMs();
    const passedMs = this.#isBusy ? processorMs - this.#savedAt : nowMs - this.#savedAtMs;
    this.#savedMs = Math.min(savedMaxMs, this.#savedMs + passedMs * share);
    this.#savedAt = processorMs;
    this.#savedAtMs = nowMs;
  }

  /** Resolves when work of this cost may begin. Always yields to the event loop, so that other work goes first. */
  async take(costMs: number): Promise<void> {
    for (;;) {
      const waitMs = this.delayMs(costMs);
      if (waitMs === 0) return new Promise((resolve) => void setImmediate(resolve));
      await sleep(this.#parts.clock, waitMs);
    }
  }
}
