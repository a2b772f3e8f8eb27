import { isoTime } from '../../domain/values/time.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';

/** Clocks are at most half a second off the store's, so the clocks of two nodes differ by at most a second. */
const clockSlackMs = 1_000;
/**
 * The longest time from the date of an event to the answer of its append: a call's timeout, and its grace to answer.
 */
const answerMaxMs = limits.callTimeoutMs + limits.deadlineGraceMs;
/** An event that is answered after a subscription made now is dated at most this long ago. */
export const startWindowMs = answerMaxMs + clockSlackMs;

/** Returns the ISO time before which every event was answered before the subscription was made. */
export function takesFrom(subscription: SubscriptionRecord): string {
  return isoTime(Date.parse(subscription.createdAt) - startWindowMs);
}

/**
 * Which events of a ledger a subscription takes: those that were answered after the call that made the subscription. An
 * append that was answered `outcome_unknown` counts as answered at that moment.
 */
export interface SubscriptionStart {
  readonly subscriptionId: string;
  /** ISO. Events dated earlier were answered before the subscription. */
  readonly from: string;
  /**
   * ISO. Of the events dated from `from` up to here, only the newest commit may have been answered after the
   * subscription: a ledger has one write in flight, and dates the next one when that has ended.
   */
  readonly newestFrom: string;
  /**
   * ISO. Events dated up to here may have been answered before. The seqs that were are kept for a while
   * (answered-seqs.ts).
   */
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
