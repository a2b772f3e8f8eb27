import type { PushedAnswers, Send } from '../calls/pushed-answers.ts';

/**
 * A stream that looks for answers when it is woken up. While it waits it has no suspended function, and no promise but
 * that of `sendTo`: a node has thousands that wait, and what is made for each wait stays in memory until a full
 * collection.
 */
export abstract class WakefulStream<T> implements PushedAnswers<T> {
  #send: Send<T> | null = null;
  /** They settle the promise of `sendTo`. */
  #resolve: (() => void) | null = null;
  #reject: ((error: unknown) => void) | null = null;
  #isLooking = false;
  #isWoken = false;
  #isEnded = false;

  /** The next answer. 'wait': there is none before the next wake-up. 'end': there will be none. */
  protected abstract find(): Promise<T | 'wait' | 'end'>;

  /** Called once. */
  protected abstract ended(): void;

  /** What `sendTo` rejects with where `find` or `send` throws, which ends the stream. */
  protected abstract failure(error: unknown): unknown;

  sendTo(send: Send<T>): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#send = send;
      this.#resolve = resolve;
      this.#reject = reject;
      this.wake();
    });
  }

  /** Ends the stream. It does not wait for a look under way: what that finds is dropped. */
  stop(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.ended();
    this.#resolve?.();
  }

  protected wake(): void {
    this.#isWoken = true;
    if (this.#send !== null && !this.#isLooking) void this.#look(this.#send);
  }

  /** Sends what it finds, until there is nothing to send yet. */
  async #look(send: Send<T>): Promise<void> {
    this.#isLooking = true;
    try {
      while (this.#isWoken && !this.#isEnded) {
        this.#isWoken = false;
        const found = await this.find();
        if (this.#isEnded || found === 'wait') continue;
        if (found === 'end') return this.stop();
        const full = send(found);
        if (full !== undefined) await full;
        this.#isWoken = true;
      }
    } catch (error) {
      // What is settled already stays as it is.
      this.#reject?.(this.failure(error));
      this.stop();
    } finally {
      this.#isLooking = false;
    }
  }
}
