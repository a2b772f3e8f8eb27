import type { Registry } from 'prom-client';
import type { Clock } from '../runtime/clock/clock.ts';
import type { Log } from '../runtime/telemetry/log.ts';
import { LedgerReading } from '../service/reading/ledger-reading.ts';
import type { SecretBox } from '../service/records/secret-box.ts';
import type { TargetPolicy } from '../service/webhooks/webhook-target.ts';
import type { LedgerStore } from '../store/ledger-store.ts';
import type { RecordStore } from '../store/record-store.ts';
import { createPoster } from './post/http-post.ts';
import { dnsLookup, type NameLookup } from './post/name-lookup.ts';
import { receiverConnector } from './post/receiver-connect.ts';
import { attemptsPerTargetMax } from './send/fair-queue.ts';
import { webhookMeter } from './webhook-meter.ts';
import { Webhooks } from './webhooks.ts';

interface NodeWebhooksParts {
  readonly ledgers: LedgerStore;
  readonly records: RecordStore;
  readonly secrets: SecretBox;
  readonly policy: TargetPolicy;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: Registry;
  /** Whether this node does the webhook work for the ledger or subscription with this id. */
  ownsShardOf(id: string): boolean;
  /** See WebhookParts. */
  readBarrier(ledgerId: string): Promise<number>;
  /** See WebhookParts. */
  readonly tellOthers: ((subscriptionId: string) => void) | null;
  /** How busy the event loop or the machine was since the last call: 0 to 1. */
  utilization(): number;
  monotonicMs(): number;
  /** Processor time of this thread, ms. */
  processorMs(): number;
  /** Looks host names up. DNS if left out. */
  readonly lookup?: NameLookup;
}

/** Creates the webhooks of a node, over real connections. Call `start` once the node's ports are open. */
export function openWebhooks(parts: NodeWebhooksParts): Webhooks {
  const { ledgers, clock, policy } = parts;
  const lookup = parts.lookup ?? dnsLookup();
  return new Webhooks({
    ...parts,
    reading: new LedgerReading(ledgers, () => clock.now()),
    poster: createPoster(receiverConnector({ policy, lookup, clock }), attemptsPerTargetMax),
    meter: webhookMeter(parts.registry),
    ownsShardOf: (id) => parts.ownsShardOf(id),
    readBarrier: (ledgerId) => parts.readBarrier(ledgerId),
    utilization: () => parts.utilization(),
    monotonicMs: () => parts.monotonicMs(),
    processorMs: () => parts.processorMs(),
  });
}
