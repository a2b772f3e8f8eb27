import type { LedgerEvent } from '../../domain/event/event.ts';
import { type DeliveryRecord, deliveryIdOf, dueAtOnce } from '../../service/webhooks/delivery-record.ts';
import type { SubscriptionRecord } from '../../service/webhooks/subscription-record.ts';

/** Whether a subscription wants events of this event's type. */
export function asksFor({ eventTypes }: SubscriptionRecord, event: LedgerEvent): boolean {
  return eventTypes.length === 0 || eventTypes.includes(event.eventType);
}

/** Returns a new delivery of an event to a subscription. `now`: when it is recorded, ISO. */
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
