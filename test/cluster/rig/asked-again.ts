import { afterMs } from '../../../cluster/local/ports.ts';

const forMs = 20_000;
const restMs = 200;
const retryable = /"code":"(unavailable|overloaded|outcome_unknown|idempotency_in_progress)"/;

/** Whether a client asks again after this answer, or after an error that tells it. */
export function isRetryable(text: string): boolean {
  return retryable.test(text);
}

/**
 * Asks again while the service says that it may, for up to 20 s: for what a test needs before it begins, of a cluster
 * whose store may answer late on a busy machine. What is made twice has to be no harm. Anything else that goes wrong is
 * thrown at once.
 */
export async function askedAgain<T>(work: () => Promise<T>): Promise<T> {
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
