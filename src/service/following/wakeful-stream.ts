type Next<T> = IteratorResult<T, undefined>;

/**
 * An iterator that is woken up when there may be something to answer with. It is in one of four states: the reader has
 * not asked; it waits for a wake-up; it looks for a message (a wake-up then makes it look once more); it has ended.
 *
 * It is no async generator: a node has thousands that wait, and each generator between the ledger and the transport
 * would hold 700 bytes of every one.
 */
export abstract class WakefulStream<T> implements AsyncIterableIterator<T, undefined> {
  /** Answers the reader; null while it does not wait. */
  #answer: ((next: Next<T> | Promise<never>) => void) | null = null;
  #isLooking = false;
  #isWoken = false;
  #isEnded = false;

  /** The next message. 'wait': there is none before the next wake-up. 'end': there will be none. */
  protected abstract find(): Promise<T | 'wait' | 'end'>;

  /** Called once. */
  protected abstract ended(): void;

  /** What the reader gets for an error of `find`, which ends the stream. */
  protected abstract failure(error: unknown): unknown;

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Next<T>> {
    if (this.#isEnded) return this.return();
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.wake();
    });
  }

  async return(): Promise<Next<T>> {
    this.finish();
    return { done: true, value: undefined };
  }

  protected wake(): void {
    this.#isWoken = true;
    if (this.#answer !== null && !this.#isLooking) void this.#look();
  }

  /** Ends the stream. It does not wait for a look under way: what that finds is dropped. */
  protected finish(): void {
    this.#end();
    this.#give({ done: true, value: undefined });
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.ended();
  }

  #give(next: Next<T> | Promise<never>): void {
    this.#answer?.(next);
    this.#answer = null;
  }

  /** Looks until it can answer, or there is nothing to answer with yet. */
  async #look(): Promise<void> {
    this.#isLooking = true;
    try {
      while (this.#isWoken && this.#answer !== null) {
        this.#isWoken = false;
        const found = await this.find();
        if (found === 'end') this.finish();
        else if (found !== 'wait') this.#give({ done: false, value: found });
      }
    } catch (error) {
      this.#end();
      this.#answer?.(Promise.reject(this.failure(error)));
      this.#answer = null;
    } finally {
      this.#isLooking = false;
    }
  }
}
