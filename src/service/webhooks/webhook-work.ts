import type { SubscriptionRecord } from './subscription-record.ts';

/** What follows the logs and sends, as the API's functions know it. None of these waits for anything, and none throws. */
export interface WebhookWork {
  /**
   * The newest seq of a ledger that this node has answered, if that was as lately as an event may still be for a new subscription; null: it
   * may have answered none.
   */
  newestAnswered(ledgerId: string): number | null;
  /** Ledgers that were written to on this node as lately as that, at most `limit`, the newest ones. */
  writtenLately(limit: number): readonly string[];
  /** From now on events of what it watches are delivered. Saying it twice is harmless. */
  subscribed(subscription: SubscriptionRecord): void;
  /** It watches nothing any more, and what waited for it is not sent. */
  ended(subscriptionId: string): void;
  /** Whether its owner's DELETE at this time (ISO) ended it is unknown: it is ended at that time, however long that takes. */
  mayHaveEnded(subscriptionId: string, at: string): void;
  /** A delivery was recorded for this subscription. */
  queued(subscriptionId: string): void;
}
