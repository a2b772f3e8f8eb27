import { seqOrder } from '../../domain/projection.ts';
import type { PutResult, RecordStore } from '../../store/record-store.ts';
import {
  type DeliveryRecord,
  dueTimeOf,
  finishedKeptMs,
  isDue,
  pendingKeptMs,
  pendingOrder,
} from './delivery-record.ts';
import { type DueDeliveries, earlier, type PendingDelivery } from './due-deliveries.ts';

/** Deliveries that have a record of their own: those that the owner of a subscription asks for (test, redeliver). */
export const ownKind = 'webhook_delivery';

/** `replaces`: the version, or 'absent'. `now` in milliseconds since 1970. */
export function putOwn(
  store: RecordStore,
  delivery: DeliveryRecord,
  replaces: string,
  now: number,
): Promise<PutResult> {
  const isPending = delivery.status === 'PENDING';
  const { subscriptionId: value } = delivery;
  const lookups = [{ name: 'subscription', value, order: ownListedOrder(delivery) }];
  if (isPending) lookups.push({ name: 'pending', value, order: pendingOrder(delivery) });
  const expiresAt = now + (isPending ? pendingKeptMs : finishedKeptMs);
  return store.put({ kind: ownKind, id: delivery.id, replaces, value: JSON.stringify(delivery), lookups, expiresAt });
}

export async function pendingOwn(
  store: RecordStore,
  subscriptionId: string,
  limit: number,
  now: string,
): Promise<DueDeliveries> {
  const found = await store.find(ownKind, { name: 'pending', value: subscriptionId }, { limit });
  const due: PendingDelivery[] = [];
  let next: string | null = null;
  for (const { value, version, order } of found) {
    const delivery = parseOwn(value);
    if (isDue(delivery, order, now)) due.push({ delivery, block: null, version, order });
    else next = earlier(next, dueTimeOf(order));
  }
  return { due, next };
}

export function parseOwn(value: string): DeliveryRecord {
  return JSON.parse(value) as DeliveryRecord;
}

function ownListedOrder(delivery: DeliveryRecord): string {
  return `${delivery.createdAt}|${seqOrder(delivery.place?.seq ?? 0)}`;
}
