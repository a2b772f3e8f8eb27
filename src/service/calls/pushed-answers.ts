/**
 * Sends one answer. Returns a promise if the reader takes too slowly: it resolves once there is room for the next
 * answer, or the call has ended.
 */
export type Send<T> = (answer: T) => Promise<void> | undefined;

/** The answers of a live stream, which are sent as they come. */
export interface PushedAnswers<T> {
  /**
   * Sends answers until there are no more, or until `stop`, and resolves then; rejects with the error that the stream
   * ends with. Call it once.
   */
  sendTo(send: Send<T>): Promise<void>;
  /** The call has ended: nothing more is sent. It may be called before `sendTo`, and more than once. */
  stop(): void;
}
