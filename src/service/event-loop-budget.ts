/** What long reads may read and parse in one turn of the event loop, all together, in characters: 2 to 5 ms of the main thread. */
const shareChars = 256 * 1024;
/** What a record costs however short it is, in the time of characters. */
const recordChars = 1_024;

/**
 * The part of the main thread's time that long reads have. When they have used up their share of a turn of the event loop they go on in the
 * next one, in the order of asking: however many there are at once, everything else waits for one share, or for one piece that is larger.
 */
export class EventLoopBudget {
  readonly #waiting: (() => void)[] = [];
  /** Of this turn. */
  #usedChars = 0;
  #endsTurn = false;

  /** null: go on at once. Else wait for it, and go on then. */
  turn(): Promise<void> | null {
    if (this.#waiting.length === 0 && this.#usedChars < shareChars) return null;
    this.#endTurnLater();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  /** Says that so much was read, or parsed. */
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
    // What it does until it waits for something is done in microtasks: behind these is the next one's place.
    queueMicrotask(() =>
      process.nextTick(() => {
        if (this.#usedChars < shareChars) this.#goOn();
        else this.#endTurnLater();
      }),
    );
  }
}

/** That of this thread. */
export const eventLoopBudget = new EventLoopBudget();
