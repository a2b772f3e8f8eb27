import { afterMs } from '../../../cluster/local/ports.ts';

const forMs = 60_000;
const restMs = 200;
const retryable = /"code":"(unavailable|overloaded|outcome_unknown|idempotency_in_progress)"/;

/** Whether an answer or the text of an error says that a client may repeat the call. */
export function isRetryable(text: string): boolean {
  return retryable.test(text);
}

/**
 * Repeats the set-up of a test for up to a minute while its errors are retryable: a store may answer late on a busy
 * machine. Running `work` twice must do no harm. Throws any other error at once.
 */
export async function withRetries<T>(work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isRetryable(String(error)) || performance.now() - began > forMs) throw error;
      await afterMs(restMs);
    }
  }
}
