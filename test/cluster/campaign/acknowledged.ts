import { afterMs } from '../../../cluster/local/ports.ts';

/** The longest wait for a new acknowledgement. */
const stalledMaxMs = 10 * 60_000;
const pollMs = 1_000;

/** Resolves with null after `least` acknowledgements, or with a sentence if none came for too long. */
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
