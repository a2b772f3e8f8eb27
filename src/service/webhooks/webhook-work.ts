import type { SubscriptionRecord } from './subscription-record.ts';

/** The webhooks of a node, as the API's functions use them. Implementations must not block or throw. */
export interface WebhookWork {
  /** The newest seq of a ledger that this node has answered lately. null if there is none, or it is not known. */
  newestAnswered(ledgerId: string): number | null;
  /** Ledgers that this node has written that recently, newest first, `limit` at most. */
  writtenLately(limit: number): readonly string[];
  /** The subscription was created: its events are delivered from now on. A repeated call is harmless. */
  subscribed(subscription: SubscriptionRecord): void;
  /** The subscription has ended: its waiting deliveries are not sent. */
  ended(subscriptionId: string): void;
  /** The owner's DELETE at this time (ISO) had an unknown outcome. It is retried with that time until settled. */
  mayHaveEnded(subscriptionId: string, at: string): void;
  queued(subscriptionId: string): void;
  /** How many active subscriptions this node knows, and SUBSCRIPTIONS_MAX. */
  subscriptionCount(): { readonly known: number; readonly max: number };
}
