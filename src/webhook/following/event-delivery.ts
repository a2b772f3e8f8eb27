import type { LedgerEvent } from '../../domain/event.ts';
import { type DeliveryRecord, deliveryIdOf, dueAtOnce } from '../../service/webhooks/delivery-record.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';

/** Whether an event is of a type that a subscription asks for. */
export function asksFor({ eventTypes }: SubscriptionRecord, event: LedgerEvent): boolean {
  return eventTypes.length === 0 || eventTypes.includes(event.eventType);
}

/** The delivery of an event to a subscription, recorded at `now` (ISO). */
export function newDelivery(subscription: SubscriptionRecord, event: LedgerEvent, now: string): DeliveryRecord {
  return {
    id: deliveryIdOf(subscription.id, event),
    subscriptionId: subscription.id,
    eventId: event.id,
    eventType: event.eventType,
    place: { ledgerId: event.ledgerId, seq: event.seq },
    eventCreatedAt: event.createdAt,
    origin: 'log',
    ...dueAtOnce(now),
  };
}
