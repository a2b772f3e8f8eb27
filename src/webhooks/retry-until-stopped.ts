import { type Clock, sleep } from '../runtime/clock/clock.ts';
import type { Log } from '../runtime/telemetry/log.ts';

const retryMs = 1_000;

/** Does work that has to succeed some time. `what` is its name in the log. */
export type RetryUntilStopped = (what: string, work: () => Promise<void>) => Promise<void>;

/** Retries failed work after a second, until it succeeds or `isStopped`. */
export function retryUntilStopped(clock: Clock, log: Log, isStopped: () => boolean): RetryUntilStopped {
  return async (what, work) => {
    while (!isStopped()) {
      try {
        return await work();
      } catch (error) {
        log.warn({ err: error }, `${what} failed; it is tried again`);
        await sleep(clock, retryMs);
      }
    }
  };
}
