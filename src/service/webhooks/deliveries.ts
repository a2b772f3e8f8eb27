import type { FindPage, RecordStore } from '../../store/record-store.ts';
import { decodeStored } from '../../store/unreadable-record.ts';
import { DeliveryBlocks, type DeliveryRange } from './delivery-blocks.ts';
import { blockDelivery, listDeliveries } from './delivery-listing.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { type DueDeliveries, earlier, type HeldDelivery } from './due-deliveries.ts';
import { OwnDeliveries, ownKind, parseOwn } from './own-deliveries.ts';

/** Delivery records, in blocks or each on its own. */
export interface Deliveries {
  /** Throws `unavailable` where the signal ends before it is found. */
  get(subscriptionId: string, id: string, signal?: AbortSignal): Promise<DeliveryRecord | null>;
  /** Records what the log makes; answers how many deliveries are new. */
  record(range: DeliveryRange): Promise<number>;
  /** Records one that the owner asks for. False if it is there already. */
  create(delivery: DeliveryRecord): Promise<boolean>;
  /** False if somebody else has changed it since. `now` in milliseconds since 1970. */
  replace(held: HeldDelivery, delivery: DeliveryRecord, now: number): Promise<boolean>;
  /** By the time when they were recorded. Throws `unavailable` where the signal ends before they are found. */
  ofSubscription(
    subscriptionId: string,
    page: Omit<FindPage, 'after'>,
    signal?: AbortSignal,
  ): Promise<DeliveryRecord[]>;
  /** Those to be sent at `now` (ISO), the first `limit` in the order that they are to be sent in. */
  pending(subscriptionId: string, limit: number, now: string): Promise<DueDeliveries>;
}

/** `now` in milliseconds since 1970. */
export function deliveriesIn(store: RecordStore, now: () => number = Date.now): Deliveries {
  const blocks = new DeliveryBlocks(store, now);
  const ofOwner = new OwnDeliveries(store, now);
  return {
    get: async (subscriptionId, id, signal) => {
      const own = await store.get(ownKind, id);
      return own === null ? blockDelivery(store, subscriptionId, id, signal) : decodeStored(own, () => parseOwn(own));
    },
    record: (range) => blocks.record(range),
    create: async (delivery) => (await ofOwner.put(delivery, 'absent', Date.parse(delivery.createdAt))).ok,
    replace: async ({ delivery, block, version }, changed, nowMs) =>
      block === null
        ? (await ofOwner.put(changed, version, nowMs)).ok
        : blocks.change({ delivery, block, version }, changed, nowMs),
    ofSubscription: (subscriptionId, page, signal) => listDeliveries(store, subscriptionId, page, signal),
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
