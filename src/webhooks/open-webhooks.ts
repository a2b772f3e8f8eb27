import type { Registry } from 'prom-client';
import type { TargetPolicy } from '../service/webhooks/webhook-target.ts';
import { createPoster } from './post/http-post.ts';
import { dnsLookup } from './post/name-lookup.ts';
import { receiverConnector } from './post/receiver-connect.ts';
import { attemptsPerTargetMax } from './send/fair-queue.ts';
import { webhookMeter } from './webhook-meter.ts';
import { type WebhookParts, Webhooks } from './webhooks.ts';

interface NodeWebhooksParts extends Omit<WebhookParts, 'poster' | 'meter'> {
  readonly policy: TargetPolicy;
  readonly registry: Registry;
}

/** Creates the webhooks of a node, over real connections. Call `start` once the node's ports are open. */
export function openWebhooks({ policy, registry, ...parts }: NodeWebhooksParts): Webhooks {
  const webhooks: Webhooks = new Webhooks({
    ...parts,
    poster: createPoster(receiverConnector({ policy, lookup: dnsLookup(), clock: parts.clock }), attemptsPerTargetMax),
    meter: webhookMeter(registry, {
      watched: () => webhooks.watchedLedgers,
      known: () => webhooks.subscriptionCount().known,
      held: () => webhooks.held,
    }),
  });
  return webhooks;
}
