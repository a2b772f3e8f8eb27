import type { LedgerEvent } from '../../domain/event.ts';
import { WebhookBodySchema } from '../../gen/svc/v1/webhooks_pb.ts';
import { restJson } from '../../rpc/rest/encode.ts';
import type { DeliveryRecord } from '../../service/webhooks/delivery-record.ts';

/** Version of the body's format (spec, Webhook delivery 2). */
const apiVersion = '2026-04-14';

/** The body of an event's delivery, the same bytes at every attempt. `createdAt`: when the delivery was made. */
export function eventBody(event: LedgerEvent, createdAt: string): Buffer {
  return Buffer.from(
    restJson(WebhookBodySchema, {
      apiVersion,
      event: {
        id: event.id,
        ledgerId: event.ledgerId,
        eventType: event.eventType,
        payload: event.payload,
        actorId: event.actorId ?? undefined,
        createdAt: event.createdAt,
        seq: BigInt(event.seq),
        masterId: event.master?.id,
        hash: event.hash,
      },
      createdAt,
    }),
  );
}

/** The body of a PING, which stands in no ledger. */
export function pingBody(delivery: DeliveryRecord): Buffer {
  return Buffer.from(
    restJson(WebhookBodySchema, {
      apiVersion,
      event: {
        id: delivery.eventId,
        eventType: delivery.eventType,
        payload: JSON.stringify({ subscription_id: delivery.subscriptionId }),
        createdAt: delivery.eventCreatedAt,
      },
      createdAt: delivery.createdAt,
    }),
  );
}
