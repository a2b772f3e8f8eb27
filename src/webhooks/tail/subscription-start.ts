import { isoTime } from '../../domain/values/time.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';

/** Clocks are at most half a second off the store's, so the clocks of two nodes differ by at most a second. */
const clockSlackMs = 1_000;
/** From the date of an event to the answer of its append, at most: a call's timeout, and its grace to answer. */
const answerMaxMs = limits.callTimeoutMs + limits.deadlineGraceMs;
/** An event that is answered after a subscription made now is dated at most this long ago. */
export const startWindowMs = answerMaxMs + clockSlackMs;

/** Events dated before this time (ISO) were answered before the subscription was made. */
export function takesFrom(subscription: SubscriptionRecord): string {
  return isoTime(Date.parse(subscription.createdAt) - startWindowMs);
}

/**
 * A subscription takes the events that were answered after the call that made it. An append that was answered
 * `outcome_unknown` counts as answered at that moment. Times are ISO.
 */
export interface SubscriptionStart {
  readonly subscriptionId: string;
  /** Events dated earlier were answered before. */
  readonly from: string;
  /**
   * Of the events dated from `from` up to here, only the newest commit may have been answered after: a ledger has one
   * write in flight, and dates the next one when that has ended.
   */
  readonly newestFrom: string;
  /** Events dated up to here may have been answered before: answered-seqs.ts keeps which. */
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
