/** Characters in one turn of the event loop: 2 to 5 ms of rows read and parsed, 5 to 10 ms of snapshots made. */
export const turnCharsMax = 256 * 1024;
/** Fixed cost of a record, in characters. */
const recordChars = 1_024;

/**
 * Limits the main thread time of long reads, or of saves. Once they have used up a turn's budget they continue in the
 * next turn, first come first served. So other work waits for one budget or one larger piece at most.
 */
export class EventLoopBudget {
  readonly #waiting: (() => void)[] = [];
  #usedChars = 0;
  #endsTurn = false;

  /** Returns null if the caller may continue at once, else a promise to await before it continues. */
  whenFree(): Promise<void> | null {
    if (this.#waiting.length === 0 && this.#usedChars < turnCharsMax) return null;
    this.#endTurnLater();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Counts what was read, parsed or made. */
  use(records: number, chars: number): void {
    this.#usedChars += chars + records * recordChars;
    this.#endTurnLater();
  }

  #endTurnLater(): void {
    if (this.#endsTurn) return;
    this.#endsTurn = true;
    setImmediate(() => {
      this.#endsTurn = false;
      this.#usedChars = 0;
      if (this.#waiting.length > 0) this.#goOn();
    });
  }

  #goOn(): void {
    this.#waiting.shift()?.();
    if (this.#waiting.length === 0) return;
    // The caller that was woken works in microtasks until it waits for something. The next one is woken after these.
    queueMicrotask(() =>
      process.nextTick(() => {
        if (this.#usedChars < turnCharsMax) this.#goOn();
        else this.#endTurnLater();
      }),
    );
  }
}

export const eventLoopBudget = new EventLoopBudget();
