import type { SubscriptionRecord } from './subscription-record.ts';

/** The webhooks of a node, as the API's functions use them. Implementations must not block or throw. */
export interface WebhookWork {
  /**
   * The newest seq of a ledger that this node has answered, if that was so recent that an event may still be delivered
   * to a new subscription. null if this node may have answered none.
   */
  newestAnswered(ledgerId: string): number | null;
  /** Ledgers that this node has written that recently, newest first, `limit` at most. */
  writtenLately(limit: number): readonly string[];
  /** The subscription was created: its events are delivered from now on. A repeated call is harmless. */
  subscribed(subscription: SubscriptionRecord): void;
  /** The subscription has ended: its waiting deliveries are not sent. */
  ended(subscriptionId: string): void;
  /**
   * It is unknown whether the owner's DELETE at this time (ISO) ended the subscription. The implementation retries the
   * end with that time until it is settled.
   */
  mayHaveEnded(subscriptionId: string, at: string): void;
  /** A delivery was recorded for this subscription. */
  queued(subscriptionId: string): void;
}
