import { turnWaitTickMs } from './bounds.ts';
import type { Clock } from './clock.ts';

/** When ledgers wait for each other with their turns. */
export interface TurnPace {
  /** As many of them take turns at once in any case. */
  readonly atOnceMax: number;
  /** Whether the node has more to do than it can. */
  readonly isSaturated: () => boolean;
}

/** They never do. */
export const unpaced: TurnPace = { atOnceMax: 0, isSaturated: () => false };

interface Waiting {
  readonly go: () => void;
  /** The tick that it came after. */
  readonly tick: number;
}

/**
 * Lets the ledgers of a node take their turns; few at once while the node has more to do than it can. Commands then wait in the mailboxes
 * of their ledgers, where they become larger groups, instead of in front of the node: a commit of five events costs little more than one
 * of one. While there is time to spare nobody waits, however slow the store is; and nobody waits for more than two ticks, whatever
 * became of the turns before.
 */
export class TurnSlots {
  readonly #clock: Clock;
  readonly #pace: TurnPace;
  #running = 0;
  /** Oldest first. */
  readonly #waiting: Waiting[] = [];
  #tick = 0;
  #isTicking = false;

  constructor(clock: Clock, pace: TurnPace) {
    this.#clock = clock;
    this.#pace = pace;
  }

  /** Begins a turn; undefined: at once. Each that has begun must `leave`. */
  enter(): Promise<void> | undefined {
    if (this.#running < this.#pace.atOnceMax || !this.#pace.isSaturated()) {
      this.#running += 1;
      return undefined;
    }
    return new Promise((go) => {
      this.#waiting.push({ go, tick: this.#tick });
      this.#startTicking();
    });
  }

  /** Ends a turn. */
  leave(): void {
    this.#running -= 1;
    if (this.#running < this.#pace.atOnceMax) this.#beginNext();
  }

  #beginNext(): void {
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#running += 1;
    next.go();
  }

  #isOverdue(waiting: Waiting | undefined): boolean {
    return waiting !== undefined && this.#tick - waiting.tick >= 2;
  }

  #startTicking(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#clock.after(turnWaitTickMs, () => {
      this.#isTicking = false;
      this.#tick += 1;
      while (this.#isOverdue(this.#waiting[0])) this.#beginNext();
      if (this.#waiting.length > 0) this.#startTicking();
    });
  }
}
