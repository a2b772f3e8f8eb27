/** The answers of a live stream, which are sent as they come. */
export interface PushedAnswers<T> {
  /**
   * Sends answers until there are no more, and resolves then; rejects with the error that the stream ends with. While
   * the promise of `send` is pending, nothing is sent. Call it once.
   */
  sendTo(send: (answer: T) => Promise<void> | undefined): Promise<void>;
  /** Ends the stream: nobody takes its answers. */
  stop(): void;
}
