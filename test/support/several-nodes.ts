import { setTimeout as delay } from 'node:timers/promises';

const isSpread = process.env.TEST_CLUSTER_API === 'spread';
/** Access history is written a tenth of a second behind the answer; that a key was revoked other nodes know within a second. */
const waitMs = Object.freeze({ 'access history': 1_000, 'a revoked API key': 1_500 });

/**
 * Where each request meets another node than the one before (test/cluster/api), waits for as long as what one has answered may be
 * unknown to the next. Everywhere else it is to be known at once, and nothing is waited for.
 */
export async function untilKnownElsewhere(what: keyof typeof waitMs): Promise<void> {
  if (isSpread) await delay(waitMs[what]);
}
