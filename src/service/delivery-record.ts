import { sha256 } from '../domain/hash.ts';
import { seqOrder } from '../domain/projection.ts';
import { UUID_V7_RANDOM_BYTES, uuidV7 } from '../domain/uuid.ts';
import type { FindPage, RecordStore } from '../store/record-store.ts';

/** The delivery of one event to one receiver, as it is kept. Times are ISO. */
export interface DeliveryRecord {
  readonly id: string;
  readonly subscriptionId: string;
  readonly eventId: string;
  readonly eventType: string;
  /** Where the event stands; null for a PING, which stands in no ledger. */
  readonly place: { readonly ledgerId: string; readonly seq: number } | null;
  /** created_at of the event; of a PING its own. */
  readonly eventCreatedAt: string;
  /** Made by the log itself, or asked for by the owner (test, redeliver). */
  readonly origin: 'log' | 'owner';
  readonly status: 'PENDING' | 'DELIVERED' | 'FAILED';
  /** Attempts made. */
  readonly attempts: number;
  readonly lastError: string | null;
  readonly lastResponseStatus: number | null;
  readonly createdAt: string;
  /** null unless PENDING. */
  readonly nextAttemptAt: string | null;
  readonly deliveredAt: string | null;
}

/** A delivery with the version that a change of it replaces. */
export interface HeldDelivery {
  readonly version: string;
  readonly delivery: DeliveryRecord;
}

export interface PendingDelivery extends HeldDelivery {
  /** Since when it waits, or when its next attempt is due: ISO. */
  readonly dueAt: string;
}

const kind = 'webhook_delivery';
const TIME_CHARS = 24;
const dayMs = 24 * 60 * 60_000;
/** How long a finished delivery is listed. */
const finishedKeptMs = 30 * dayMs;
/** Attempts end after three hours, so what is older belongs to a subscription that has ended, or waits for a node that was off for months. */
const pendingKeptMs = 180 * dayMs;

/**
 * The delivery of an event to a subscription has one id, so that fanning out again writes nothing twice. It is a UUIDv7 of the event's time
 * whose other bits are a hash of both: deliveries of one time stand side by side in the store (a UUIDv5 would put each on a page of its
 * own, at several times the cost of a commit).
 */
export function deliveryIdOf(
  subscriptionId: string,
  event: { readonly id: string; readonly createdAt: string },
): string {
  const bits = sha256(`${subscriptionId}|${event.id}`).subarray(0, UUID_V7_RANDOM_BYTES);
  return uuidV7(Math.max(0, Date.parse(event.createdAt)), bits);
}

export interface Deliveries {
  get(id: string): Promise<DeliveryRecord | null>;
  /** False if it is there already. */
  create(delivery: DeliveryRecord): Promise<boolean>;
  /** False if somebody else has changed it since. `now` in milliseconds since 1970. */
  replace(held: HeldDelivery, delivery: DeliveryRecord, now: number): Promise<boolean>;
  ofSubscription(subscriptionId: string, page: FindPage): Promise<DeliveryRecord[]>;
  /**
   * Those to be sent, by the time since when they are due. New ones count from their event's time, so that those of one ledger come in
   * its order.
   */
  pending(subscriptionId: string, limit: number): Promise<PendingDelivery[]>;
}

export function deliveriesIn(store: RecordStore): Deliveries {
  const write = (delivery: DeliveryRecord, replaces: string, now: number) => {
    const pending = delivery.status === 'PENDING';
    const listed = {
      name: 'subscription',
      value: delivery.subscriptionId,
      order: `${delivery.createdAt}|${seqOrder(delivery.place?.seq ?? 0)}`,
    };
    return store.put({
      kind,
      id: delivery.id,
      replaces,
      value: JSON.stringify(delivery),
      lookups: pending
        ? [listed, { name: 'pending', value: delivery.subscriptionId, order: pendingOrder(delivery) }]
        : [listed],
      expiresAt: now + (pending ? pendingKeptMs : finishedKeptMs),
    });
  };
  return {
    get: async (id) => {
      const record = await store.get(kind, id);
      return record === null ? null : parse(record.value);
    },
    create: async (delivery) => (await write(delivery, 'absent', Date.parse(delivery.createdAt))).ok,
    replace: async (held, delivery, now) => (await write(delivery, held.version, now)).ok,
    ofSubscription: async (subscriptionId, page) =>
      (await store.find(kind, { name: 'subscription', value: subscriptionId }, page)).map((record) =>
        parse(record.value),
      ),
    pending: async (subscriptionId, limit) =>
      (await store.find(kind, { name: 'pending', value: subscriptionId }, { limit })).map((record) => ({
        version: record.version,
        delivery: parse(record.value),
        dueAt: record.order.slice(0, TIME_CHARS),
      })),
  };
}

function pendingOrder(delivery: DeliveryRecord): string {
  const isNew = delivery.origin === 'log' && delivery.attempts === 0;
  const due = isNew ? delivery.eventCreatedAt : (delivery.nextAttemptAt ?? delivery.createdAt);
  return `${due}|${delivery.place?.ledgerId ?? ''}|${seqOrder(delivery.place?.seq ?? 0)}`;
}

function parse(value: string): DeliveryRecord {
  return JSON.parse(value) as DeliveryRecord;
}
