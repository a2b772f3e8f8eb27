import type { RecordWrite, StoredRecord } from '../../store/record-store.ts';
import { parserOf, text, time } from '../records/record-form.ts';
import {
  checkDelivery,
  type DeliveryRecord,
  finishedKeptMs,
  listedOrder,
  pendingKeptMs,
  pendingLookup,
  pendingOrder,
} from './delivery-record.ts';

/** Deliveries with a record of their own: those that a subscription's owner asks for (test, redeliver). */
export const requestedKind = 'webhook_delivery';

const parseDelivery = parserOf<DeliveryRecord>({ subscriptionId: text, createdAt: time });

/** Throws if the value is no delivery with this id. */
export function parseRequested({ id, value }: Pick<StoredRecord, 'id' | 'value'>): DeliveryRecord {
  const delivery = parseDelivery(value);
  checkDelivery(delivery);
  if (delivery.id !== id) throw new TypeError('This is another delivery.');
  return delivery;
}

/** The record of a delivery. `replaces`: the version, or 'absent'. `now`: Unix time, ms. */
export function requestedWrite(delivery: DeliveryRecord, replaces: string, now: number): RecordWrite {
  const { id, subscriptionId, status } = delivery;
  const order = listedOrder(delivery.createdAt, delivery.place?.seq);
  const lookups = [{ name: 'subscription', value: subscriptionId, order }];
  if (status === 'PENDING') lookups.push(pendingLookup(subscriptionId, pendingOrder(delivery)));
  const expiresAt = now + (status === 'PENDING' ? pendingKeptMs : finishedKeptMs);
  return { kind: requestedKind, id, replaces, value: JSON.stringify(delivery), lookups, expiresAt };
}
