import type { Clock } from '../../src/runtime/clock/clock.ts';
import type { SimulatedTime } from './time.ts';

/**
 * One run of a node's process, from its start to its crash. What reaches it while it is paused happens when it wakes;
 * after its end nothing does.
 */
export class Life {
  readonly #time: SimulatedTime;
  #state: 'running' | 'paused' | 'over' = 'running';
  #held: (() => void)[] = [];
  #mourners: (() => void)[] = [];
  /** How far its clock is off, milliseconds. */
  skewMs = 0;

  constructor(time: SimulatedTime) {
    this.#time = time;
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  get clock(): Clock {
    return {
      now: () => this.#time.now + this.skewMs,
      after: (delayMs, run) => this.#time.after(delayMs, () => this.deliver(run)),
    };
  }

  deliver(run: () => void): void {
    if (this.#state === 'running') run();
    else if (this.#state === 'paused') this.#held.push(run);
  }

  pause(): void {
    if (this.#state === 'running') this.#state = 'paused';
  }

  resume(): void {
    if (this.#state !== 'paused') return;
    this.#state = 'running';
    const held = this.#held;
    this.#held = [];
    for (const run of held) this.#time.after(0, () => this.deliver(run));
  }

  end(): void {
    this.#state = 'over';
    this.#held = [];
    for (const mourn of this.#mourners) mourn();
    this.#mourners = [];
  }

  /** Whoever is connected to the process notices its end. */
  onEnd(run: () => void): void {
    if (this.isOver) run();
    else this.#mourners.push(run);
  }
}
