import { afterMs } from '../../../cluster/local/ports.ts';

/**
 * Nobody waits longer for a new acknowledgement: a cluster that was left unable to append gives none, whatever the load
 * does.
 */
const stalledMaxMs = 10 * 60_000;
const pollMs = 1_000;

/**
 * Resolves when so many appends were acknowledged, or, with what is wrong in words, when no new one was for too long.
 */
export async function untilAcknowledged(acknowledged: () => number, least: number): Promise<string | null> {
  let [known, sinceMs] = [acknowledged(), performance.now()];
  while (known < least) {
    await afterMs(pollMs);
    const now = acknowledged();
    if (now > known) [known, sinceMs] = [now, performance.now()];
    else if (performance.now() - sinceMs >= stalledMaxMs)
      return `stalled: no append was acknowledged for ${stalledMaxMs / 60_000} min, after ${known} of ${least}`;
  }
  return null;
}
