import type { Party } from './party.ts';
import { openReceiver, type Receiver } from './receiver.ts';
import { check, type Step, step } from './steps.ts';

/** The webhook part of the story: the run itself is the receiver. */
export interface WebhookSteps {
  /** To run before the events are written. */
  subscribe(owner: Party, ledgerId: () => string): Iterable<Step>;
  /** To run after the events were written. */
  received(): Iterable<Step>;
  close(): Promise<void>;
}

/** Deliveries are background work: they may wait while the service is busy. */
const deliveryTimeoutMs = 30_000;

/** Subscriptions made until this node sends for one. With ten nodes, one run in a thousand finds none. */
const triesMax = 64;

/**
 * `sentHere`: whether this node sends for the subscription. Other nodes cannot reach the receiver's loopback address.
 */
export function webhookSteps(sentHere: (subscriptionId: string) => boolean): WebhookSteps {
  let receiver: Receiver | null = null;
  let subscribed: { readonly id: string; readonly owner: Party } | null = null;

  const end = async (): Promise<void> => {
    await subscribed?.owner.client.deleteWebhook({ id: subscribed.id });
    subscribed = null;
  };

  return {
    *subscribe(owner, ledgerId) {
      yield step(`the ${owner.name} subscribes a webhook to SHIPMENT_DISPATCHED`, async (signal) => {
        receiver = await openReceiver();
        const subscription = { url: receiver.url, eventTypes: ['SHIPMENT_DISPATCHED'], ledgerId: ledgerId() };
        for (let tries = 1; ; tries += 1) {
          const { id, secret } = await owner.client.createWebhook(subscription);
          subscribed = { id, owner };
          receiver.useSecret(secret);
          if (sentHere(id) || tries === triesMax) return receiver.url;
          await end();
          signal.throwIfAborted();
        }
      });
    },
    *received() {
      yield step('the webhook of the shipment came, and its HMAC is right', async (signal) => {
        check(receiver !== null && subscribed !== null, 'nobody subscribed');
        const { event } = await receiver.delivery(
          ({ event }) => event.eventType === 'SHIPMENT_DISPATCHED',
          deliveryTimeoutMs,
          signal,
        );
        await end();
        return `event ${event.id}`;
      });
    },
    close: async () => {
      // The subscription is deleted even if the run failed: every node reads it again at each start.
      await end().catch(() => {});
      await receiver?.close();
    },
  };
}

/** For a service that delivers to public addresses alone, which the run has none of. The story shows `reason`. */
export function skippedWebhookSteps(reason: string): WebhookSteps {
  return {
    *subscribe() {},
    *received() {
      yield step('the webhook step is skipped', async () => reason);
    },
    close: async () => {},
  };
}
