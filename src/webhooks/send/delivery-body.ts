import type { LedgerEvent } from '../../domain/event/event.ts';
import { WebhookBodySchema } from '../../gen/svc/v1/webhooks_pb.ts';
import { restJson } from '../../service/encoding/message-json.ts';
import type { DeliveryRecord } from '../../service/webhooks/delivery-record.ts';

const apiVersion = '2026-04-14';

/** The same bytes at every attempt. `createdAt`: when the delivery was recorded, ISO. */
export function eventBody(event: LedgerEvent, createdAt: string): Buffer {
  const text = restJson(WebhookBodySchema, {
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
  });
  // Not from Node's pool, of which a body that is kept would keep 64 KiB.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** A PING belongs to no ledger. */
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
