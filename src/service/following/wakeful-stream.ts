import type { PushedAnswers } from '../calls/pushed-answers.ts';

/**
 * A stream that is woken up when there may be something to answer with. Until then nothing waits in it, neither a call
 * nor a promise: a node has thousands that wait, and what was made for each wait would grow old with it.
 */
export abstract class WakefulStream<T> implements PushedAnswers<T> {
  #send: ((answer: T) => Promise<void> | undefined) | null = null;
  /** Resolves the promise of `sendTo`. */
  #over: ((over?: Promise<never>) => void) | null = null;
  #isLooking = false;
  #isWoken = false;
  #isEnded = false;

  /** The next answer. 'wait': there is none before the next wake-up. 'end': there will be none. */
  protected abstract find(): Promise<T | 'wait' | 'end'>;

  /** Called once. */
  protected abstract ended(): void;

  /** What `sendTo` rejects with for an error of `find`, which ends the stream. */
  protected abstract failure(error: unknown): unknown;

  sendTo(send: (answer: T) => Promise<void> | undefined): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    return new Promise((resolve) => {
      this.#send = send;
      this.#over = resolve;
      this.wake();
    });
  }

  /** Ends the stream. It does not wait for a look under way: what that finds is dropped. */
  stop(): void {
    this.#end();
  }

  protected wake(): void {
    this.#isWoken = true;
    if (this.#send !== null && !this.#isLooking) void this.#look(this.#send);
  }

  #end(error?: Promise<never>): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.ended();
    this.#over?.(error);
    this.#over = null;
    this.#send = null;
  }

  /** Sends what it finds, until there is nothing to send yet. */
  async #look(send: (answer: T) => Promise<void> | undefined): Promise<void> {
    this.#isLooking = true;
    try {
      while (this.#isWoken && !this.#isEnded) {
        this.#isWoken = false;
        const found = await this.find();
        if (this.#isEnded || found === 'wait') continue;
        if (found === 'end') return this.#end();
        const full = send(found);
        if (full !== undefined) await full;
        this.#isWoken = true;
      }
    } catch (error) {
      this.#end(Promise.reject(this.failure(error)));
    } finally {
      this.#isLooking = false;
    }
  }
}
