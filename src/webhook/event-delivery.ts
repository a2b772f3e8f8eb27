import type { LedgerEvent } from '../domain/event.ts';
import { type DeliveryRecord, deliveryIdOf } from '../service/delivery-record.ts';
import { type SubscriptionRecord, takesFrom } from '../service/subscription-record.ts';

/** Whether an event is what a subscription asks for, its owner's access aside. */
export function isFor(subscription: SubscriptionRecord, event: LedgerEvent): boolean {
  if (subscription.eventTypes.length > 0 && !subscription.eventTypes.includes(event.eventType)) return false;
  return event.createdAt >= takesFrom(subscription) && event.seq > (subscription.seen[event.ledgerId] ?? -1);
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
    status: 'PENDING',
    attempts: 0,
    lastError: null,
    lastResponseStatus: null,
    createdAt: now,
    nextAttemptAt: now,
    deliveredAt: null,
  };
}
