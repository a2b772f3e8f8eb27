import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'vitest';

/** How the API suite meets a cluster (test/cluster/api); undefined: it meets an embedded node. */
const met = process.env.TEST_CLUSTER_API;
const isSpread = met === 'spread';

/**
 * A test of what is true of an embedded node alone, like its store's name and what its files hold: skipped where there
 * is none.
 */
export const embeddedTest = test.skipIf(met !== undefined);

/** A test of what is true of each node by itself: skipped where each request meets another one. */
export const oneNodeTest = test.skipIf(isSpread);

/** Access history is written 0.1 s after the answer; a revoked key is known to other nodes within 1 s. */
const waitMs = Object.freeze({ 'access history': 1_000, 'a revoked API key': 1_000 });

/**
 * Where each request meets another node than the one before (test/cluster/api), waits for as long as what one has
 * answered may be unknown to the next. Everywhere else it is to be known at once, and nothing is waited for.
 */
export async function untilKnownElsewhere(what: keyof typeof waitMs): Promise<void> {
  if (isSpread) await delay(waitMs[what]);
}
