import type { Party } from './party.ts';
import { openReceiver, type Receiver } from './receiver.ts';
import { check, type Step } from './steps.ts';

/** The part of the story that is about webhooks: the run itself is the receiver. */
export interface WebhookSteps {
  /** Before the events. */
  subscribe(owner: Party, ledgerId: () => string): Iterable<Step>;
  /** After them. */
  received(): Iterable<Step>;
  close(): Promise<void>;
}

/** Deliveries are background work: they may wait while the service is busy. */
const deliveryTimeoutMs = 30_000;

/** Subscriptions made until one is sent for by this node: with ten nodes, one run in a thousand finds none. */
const triesMax = 64;

/**
 * `sentHere`: whether this node sends for the subscription of this id. The receiver listens on the node's own loopback, which no other node
 * reaches.
 */
export function webhookSteps(sentHere: (subscriptionId: string) => boolean): WebhookSteps {
  let receiver: Receiver | null = null;
  /** The subscription that stands. */
  let standing: { readonly id: string; readonly owner: Party } | null = null;

  const end = async (): Promise<void> => {
    await standing?.owner.client.deleteWebhook({ id: standing.id });
    standing = null;
  };

  return {
    *subscribe(owner, ledgerId) {
      yield {
        title: `the ${owner.name} subscribes a webhook to SHIPMENT_DISPATCHED`,
        run: async (signal) => {
          receiver = await openReceiver();
          const subscription = { url: receiver.url, eventTypes: ['SHIPMENT_DISPATCHED'], ledgerId: ledgerId() };
          for (let tries = 1; ; tries += 1) {
            const { id, secret } = await owner.client.createWebhook(subscription);
            standing = { id, owner };
            receiver.useSecret(secret);
            if (sentHere(id) || tries === triesMax) return receiver.url;
            await end();
            signal.throwIfAborted();
          }
        },
      };
    },
    *received() {
      yield {
        title: 'the webhook of the shipment came, and its HMAC is right',
        run: async (signal) => {
          check(receiver !== null && standing !== null, 'nobody subscribed');
          const { event } = await receiver.delivery(
            ({ event }) => event.eventType === 'SHIPMENT_DISPATCHED',
            deliveryTimeoutMs,
            signal,
          );
          await end();
          return `event ${event.id}`;
        },
      };
    },
    close: async () => {
      // Whatever became of the run: what stood would be read again at every start of a node.
      await end().catch(() => {});
      await receiver?.close();
    },
  };
}

/** For a service that delivers to public addresses alone: the run has none, and says so. */
export function skippedWebhookSteps(reason: string): WebhookSteps {
  return {
    *subscribe() {},
    *received() {
      yield { title: 'the webhook step is skipped', run: async () => reason };
    },
    close: async () => {},
  };
}
