import type { FindPage, RecordStore } from '../../store/record-store.ts';
import { decodeStored } from '../../store/unreadable-record.ts';
import { boundedRecords } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';
import { DeliveryBlocks, type DeliveryRange } from './delivery-blocks.ts';
import { blockDelivery, listDeliveries } from './delivery-listing.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { type DueDeliveries, earlier, type HeldDelivery } from './due-deliveries.ts';
import { parseRequested, RequestedDeliveries, requestedKind } from './requested-deliveries.ts';

/** Delivery records. Those made by the log are in blocks; each that an owner asked for has its own record. */
export interface Deliveries {
  get(walk: Walk, subscriptionId: string, id: string): Promise<DeliveryRecord | null>;
  /** Records deliveries that the log makes. Returns how many of them are new. */
  record(range: DeliveryRange): Promise<number>;
  /** Records a delivery that the owner asks for. Returns false if it exists. */
  create(delivery: DeliveryRecord): Promise<boolean>;
  /** Returns false if the delivery was changed meanwhile. `now` in milliseconds since 1970. */
  replace(held: HeldDelivery, delivery: DeliveryRecord, now: number): Promise<boolean>;
  /** In the order of recording. */
  ofSubscription(walk: Walk, subscriptionId: string, page: Omit<FindPage, 'after'>): Promise<DeliveryRecord[]>;
  /** The deliveries to send at `now` (ISO), the first `limit` in the order of sending. */
  pending(subscriptionId: string, limit: number, now: string): Promise<DueDeliveries>;
}

/** `now` in milliseconds since 1970. */
export function deliveriesIn(store: RecordStore, now: () => number = Date.now): Deliveries {
  const blocks = new DeliveryBlocks(store, now);
  const ofOwner = new RequestedDeliveries(store, now);
  return {
    get: async (walk, subscriptionId, id) => {
      const own = await store.get(requestedKind, id);
      if (own !== null) return decodeStored(own, () => parseRequested(own));
      return blockDelivery(boundedRecords(walk, store), subscriptionId, id);
    },
    record: (range) => blocks.record(range),
    create: async (delivery) => (await ofOwner.put(delivery, 'absent', Date.parse(delivery.createdAt))).ok,
    replace: async ({ delivery, block, version }, changed, nowMs) =>
      block === null
        ? (await ofOwner.put(changed, version, nowMs)).ok
        : blocks.change({ delivery, block, version }, changed, nowMs),
    ofSubscription: (walk, subscriptionId, page) => listDeliveries(boundedRecords(walk, store), subscriptionId, page),
    pending: async (subscriptionId, limit, at) => {
      const [own, ofLog] = await Promise.all([
        ofOwner.pending(subscriptionId, limit, at),
        blocks.pending(subscriptionId, limit, at),
      ]);
      const due = [...own.due, ...ofLog.due].sort((a, b) => (a.order < b.order ? -1 : Number(a.order > b.order)));
      return { due: due.slice(0, limit), next: earlier(own.next, ofLog.next) };
    },
  };
}
