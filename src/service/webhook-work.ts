import type { SubscriptionRecord } from './subscription-record.ts';

/** What follows the logs and sends, as the API's functions know it. None of these waits for anything, and none throws. */
export interface WebhookWork {
  /** The newest seq of every ledger that was written to on this node within the last two seconds. */
  newestSeqs(): ReadonlyMap<string, number>;
  /** From now on events of what it watches are delivered. Saying it twice is harmless. */
  subscribed(subscription: SubscriptionRecord): void;
  /** It watches nothing any more, and what waited for it is not sent. */
  ended(subscriptionId: string): void;
  /** A delivery was recorded for this subscription. */
  queued(subscriptionId: string): void;
}
