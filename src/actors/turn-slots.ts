import { turnTickMs } from './bounds.ts';
import type { Clock } from './clock.ts';

/** When ledgers wait for each other with their turns. */
export interface TurnPace {
  /** As many of them take turns at once in any case. */
  readonly atOnceMax: number;
  /** No turn waits for longer. */
  readonly waitMaxMs: number;
  /** Whether the node has more to do than it can. */
  readonly isSaturated: () => boolean;
}

/** They never do. */
export const unpaced: TurnPace = { atOnceMax: 0, waitMaxMs: 0, isSaturated: () => false };

interface Waiting {
  readonly go: () => void;
  /** The tick that it came after. */
  readonly tick: number;
}

/**
 * Lets the ledgers of a node take their turns; few at once while the node has more to do than it can. Commands then wait in the mailboxes
 * of their ledgers, where they become larger groups, instead of in front of the node: a commit of five events costs little more than one
 * of one. While there is time to spare nobody waits, however slow the store is; and nobody waits for longer than the pace says, whatever
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

  /** Begins a turn; undefined: at once. Each that has begun must `leave`. `isUrgent`: others wait for this one to end. */
  enter(isUrgent = false): Promise<void> | undefined {
    this.#goOn();
    if (isUrgent || this.#mayBegin()) {
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
    this.#goOn();
  }

  #mayBegin(): boolean {
    return this.#running < this.#pace.atOnceMax || !this.#pace.isSaturated();
  }

  /** Begins the turns that need not wait any longer. */
  #goOn(): void {
    for (let [first] = this.#waiting; first !== undefined; [first] = this.#waiting) {
      if (!this.#isOverdue(first) && !this.#mayBegin()) break;
      this.#waiting.shift();
      this.#running += 1;
      first.go();
    }
  }

  #isOverdue({ tick }: Waiting): boolean {
    return (this.#tick - tick) * turnTickMs >= this.#pace.waitMaxMs;
  }

  #startTicking(): void {
    if (this.#isTicking) return;
    this.#isTicking = true;
    this.#clock.after(turnTickMs, () => {
      this.#isTicking = false;
      this.#tick += 1;
      this.#goOn();
      if (this.#waiting.length > 0) this.#startTicking();
    });
  }
}
