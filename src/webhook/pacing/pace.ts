import { type Clock, sleep } from '../../actors/clock.ts';

/** How often it is asked whether the event loop is busy. */
const sampleMs = 100;
/** Busy beyond this share of the last sample, and only while ledgers are written to at this rate or more: fewer fill no machine. */
const busyUtilization = 0.85;
const busyEventsPerSecond = 500;
/** A machine that appends fill has moments to spare; it counts as full until it has had time to spare for so long. */
const calmAfterMs = 500;
/** What fanning out and sending may take of the processor time that this thread gets while it is busy. */
const busyShare = 0.015;
/** What may be saved up: a burst longer than this would be felt by appends. */
const savedMaxMs = 5;

export interface PaceParts {
  readonly clock: Clock;
  /** How busy the event loop or the machine was since the last call: 0 to 1. */
  utilization(): number;
  /** Milliseconds of a clock that never goes back. */
  monotonicMs(): number;
  /** Milliseconds of processor time that this thread has had: what it gets where other programs run too. */
  processorMs(): number;
}

/**
 * Fanning out and sending are background work on the processors that appends need. While appends alone could fill these (the event loop or
 * the machine was busy more than 85 % of a tenth of the last half second, and many events are being written), background work gets 1.5 % of the
 * time that this thread gets, and the log keeps what waits; otherwise it goes as fast as its own limits allow. Where little is appended it may well be busy: then
 * with deliveries. What a piece of work costs cannot be measured while it waits for sockets and disks, so callers say what it costs as
 * measured on a quiet machine.
 */
export class Pace {
  readonly #parts: PaceParts;
  #sampledAt: number;
  #events = 0;
  #isBusy = false;
  #busyUntil = Number.NEGATIVE_INFINITY;
  #savedMs = 0;
  #savedAt: number;

  constructor(parts: PaceParts) {
    this.#parts = parts;
    this.#sampledAt = parts.monotonicMs();
    this.#savedAt = parts.processorMs();
  }

  /** Whether background work is held back, as of the last time that it asked. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Events were written to a ledger. */
  committed(events: number): void {
    this.#events += events;
  }

  /** How long to wait before work of this cost (of the main thread) may begin. 0: now, and it counts as done. */
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

  /** Resolves when work of this cost may begin, and never before everything else that is ready had its turn. */
  async take(costMs: number): Promise<void> {
    for (;;) {
      const waitMs = this.delayMs(costMs);
      if (waitMs === 0) return new Promise((resolve) => void setImmediate(resolve));
      await sleep(this.#parts.clock, waitMs);
    }
  }
}
