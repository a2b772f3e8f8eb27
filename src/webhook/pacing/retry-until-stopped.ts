import { type Clock, sleep } from '../../actors/clock.ts';
import type { Log } from '../../log.ts';

const retryMs = 1_000;

/** Does work that has to be done some time, whatever the store does now. `what` is its name in the log. */
export type Persevere = (what: string, work: () => Promise<void>) => Promise<void>;

/** Tries what failed again after a second, until it is done or `isStopped`. */
export function retryUntilStopped(clock: Clock, log: Log, isStopped: () => boolean): Persevere {
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
