import type { LedgerEvent } from '../../domain/event/event.ts';
import { seqOrder } from '../../domain/event/projection.ts';
import { sha256 } from '../../domain/keys/hash.ts';
import { UUID_V7_RANDOM_BYTES, uuidV7 } from '../../domain/values/uuid.ts';
import { count, objectOf, oneOf, orNull, text, time } from '../records/record-form.ts';

/** The delivery of one event to one receiver, as stored. Times are ISO. */
export interface DeliveryRecord {
  readonly id: string;
  readonly subscriptionId: string;
  readonly eventId: string;
  readonly eventType: string;
  /** The event's ledger and seq. null for a PING, which is in no ledger. */
  readonly place: { readonly ledgerId: string; readonly seq: number } | null;
  /** created_at of the event; for a PING its own time. */
  readonly eventCreatedAt: string;
  readonly origin: 'log' | 'owner';
  readonly status: 'PENDING' | 'DELIVERED' | 'FAILED';
  readonly attempts: number;
  readonly lastError: string | null;
  readonly lastResponseStatus: number | null;
  readonly createdAt: string;
  readonly nextAttemptAt: string | null;
  /** No list is in this order: lists are in the order of recording. */
  readonly deliveredAt: string | null;
}

type CheckedMember = 'id' | 'eventId' | 'eventType' | 'eventCreatedAt' | 'status' | 'attempts' | 'nextAttemptAt';
const isDelivery = objectOf<Pick<DeliveryRecord, CheckedMember>>({
  id: text,
  eventId: text,
  eventType: text,
  eventCreatedAt: time,
  status: oneOf('PENDING', 'DELIVERED', 'FAILED'),
  attempts: count,
  nextAttemptAt: orNull(time),
});

/** Throws TypeError if these cannot be members of a stored delivery. Sending relies on them. */
export function checkDelivery(of: Pick<DeliveryRecord, CheckedMember>): void {
  if (!isDelivery(of)) throw new TypeError('This is no delivery.');
}

export function dueAtOnce(now: string) {
  return {
    status: 'PENDING',
    attempts: 0,
    lastError: null,
    lastResponseStatus: null,
    createdAt: now,
    nextAttemptAt: now,
    deliveredAt: null,
  } as const;
}

const TIME_CHARS = 24;
/** Length of the prefix that ISO times of the same ten minutes share. */
const SLOT_CHARS = 15;
const dayMs = 24 * 60 * 60_000;
export const finishedKeptMs = 30 * dayMs;
/** Attempts end after three hours: what is older belongs to an ended subscription, or the node was off for months. */
export const pendingKeptMs = 180 * dayMs;

/** The same each time the event is fanned out: a UUIDv7 with the event's time, and a hash of both ids. */
export function deliveryIdOf(subscriptionId: string, event: Pick<LedgerEvent, 'id' | 'createdAt'>): string {
  const bits = sha256(`${subscriptionId}|${event.id}`).subarray(0, UUID_V7_RANDOM_BYTES);
  return uuidV7(Math.max(0, Date.parse(event.createdAt)), bits);
}

/** Whether the log made the delivery, and it had no attempt. These keep the order of their ledger on any clock. */
export function isNew(delivery: DeliveryRecord): boolean {
  return delivery.origin === 'log' && delivery.attempts === 0;
}

/** The sort key of a PENDING delivery. New ones sort by their event's time, and so in the order of their ledger. */
export function pendingOrder(delivery: DeliveryRecord): string {
  return isNew(delivery) ? newOrder(delivery) : orderAt(delivery.nextAttemptAt ?? delivery.createdAt, delivery);
}

/** The sort key of a block or delivery in its subscription's list. */
export function listedOrder(createdAt: string, seq = 0): string {
  return `${createdAt}|${seqOrder(seq)}`;
}

/** The first sort key of a delivery that the log made. */
export function newOrder(delivery: DeliveryRecord): string {
  return orderAt(delivery.eventCreatedAt, delivery);
}

function orderAt(due: string, delivery: DeliveryRecord): string {
  return `${due}|${delivery.place?.ledgerId ?? ''}|${seqOrder(delivery.place?.seq ?? 0)}`;
}

export function dueTimeOf(order: string): string {
  return order.slice(0, TIME_CHARS);
}

/** The slot (ten minutes) of a sort key: the prefix of its ISO times. See DueSlots. */
export function slotOf(order: string): string {
  return order.slice(0, SLOT_CHARS);
}

export function slotValue(subscriptionId: string, slot: string): string {
  return `${subscriptionId}|${slot}`;
}

/** The look-up of a record among a subscription's PENDING ones. */
export function pendingLookup(subscriptionId: string, order: string) {
  return { name: 'pending', value: slotValue(subscriptionId, slotOf(order)), order };
}

/** Whether the delivery may be sent at `now` (ISO). `order` is its sort key. */
export function isDue(delivery: DeliveryRecord, order: string, now: string): boolean {
  return isNew(delivery) || dueTimeOf(order) <= now;
}
