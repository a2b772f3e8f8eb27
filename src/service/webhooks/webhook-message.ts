import type { DeliveryRecord } from './delivery-record.ts';
import type { SubscriptionRecord } from './subscription-record.ts';

export function subscriptionMessage(subscription: SubscriptionRecord) {
  return {
    id: subscription.id,
    url: subscription.url,
    active: subscription.endedAt === null,
    eventTypes: [...subscription.eventTypes],
    ledgerId: subscription.ledgerId ?? undefined,
    createdAt: subscription.createdAt,
  };
}

/** A delivery as its owner reads it. A PENDING one of an ended subscription is never sent, so it reads as FAILED. */
export function deliveryMessage(delivery: DeliveryRecord, endedAt: string | null) {
  const isCutOff = endedAt !== null && delivery.status === 'PENDING';
  return {
    id: delivery.id,
    eventId: delivery.eventId,
    ledgerId: delivery.place?.ledgerId,
    eventType: delivery.eventType,
    status: isCutOff ? 'FAILED' : delivery.status,
    attempt: Math.max(0, delivery.attempts - 1),
    lastError: isCutOff ? 'The subscription has ended.' : (delivery.lastError ?? undefined),
    lastResponseStatus: delivery.lastResponseStatus ?? undefined,
    createdAt: delivery.createdAt,
    nextAttemptAt: isCutOff ? undefined : (delivery.nextAttemptAt ?? undefined),
    deliveredAt: delivery.deliveredAt ?? undefined,
  };
}
