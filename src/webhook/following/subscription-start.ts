import { isoTime } from '../../domain/time.ts';
import { limits } from '../../limits.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';

/** Clocks are half a second off the store's at most (decisions.md, section 4), so those of two nodes a second. */
const clockSlackMs = 1_000;
/** From the date of an event to the answer of its append: what a call may take, and how late its transport may answer. */
const answerMaxMs = limits.callTimeoutMs + limits.deadlineGraceMs;
/** How long ago an event may be dated that is answered after a subscription made now. */
export const startWindowMs = answerMaxMs + clockSlackMs;

/** ISO time: what is dated before it was answered before the subscription. */
export function takesFrom(subscription: SubscriptionRecord): string {
  return isoTime(Date.parse(subscription.createdAt) - startWindowMs);
}

/**
 * From where on a subscription takes the events of one ledger: those answered after its own answer. An append that was answered
 * `outcome_unknown` counts as answered then.
 */
export interface SubscriptionStart {
  readonly subscriptionId: string;
  /** ISO. What is dated earlier was answered before. */
  readonly from: string;
  /**
   * ISO. A ledger has one write under way and dates the next one once that is over, so of what is dated between `from` and here
   * only its newest commit may have been answered later.
   */
  readonly newestFrom: string;
  /** ISO. What is dated up to here may have been answered before; what was is kept for a while (answered-seqs.ts). */
  readonly through: string;
}

export function startOf(subscription: SubscriptionRecord): SubscriptionStart {
  const madeMs = Date.parse(subscription.createdAt);
  return {
    subscriptionId: subscription.id,
    from: takesFrom(subscription),
    newestFrom: isoTime(madeMs - clockSlackMs),
    through: isoTime(madeMs + clockSlackMs),
  };
}
