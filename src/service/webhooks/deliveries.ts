import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import type { FindPage, PutResult, RecordStore } from '../../store/record-store.ts';
import { decodeStored } from '../../store/unreadable-record.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import { boundedRecords } from '../walking/bounded-stores.ts';
import type { Walk } from '../walking/walk.ts';
import { blockKind, parseBlock } from './delivery-block.ts';
import { DeliveryBlocks, type DeliveryRange } from './delivery-blocks.ts';
import { blockDelivery, listDeliveries } from './delivery-listing.ts';
import { type DeliveryRecord, pendingOrder } from './delivery-record.ts';
import { type DueDeliveries, earlier, type HeldDelivery } from './due-deliveries.ts';
import { DueSlots } from './due-slots.ts';
import { parseRequested, requestedKind, requestedWrite } from './requested-deliveries.ts';

export type Deliveries = ReturnType<typeof deliveriesIn>;

/**
 * Delivery records. Those made by the log are in blocks; each that an owner asked for has its own record. `now`: Unix
 * time, ms. `memory` bounds the blocks that are kept for changes.
 */
export function deliveriesIn(store: RecordStore, memory: MemoryBudget, now: () => number = Date.now) {
  const blockSlots = new DueSlots(store, blockKind, now, (record) => {
    const block = parseBlock(record);
    blocks.keep(record.id, { block, version: record.version }, record.value.length);
    return { blockId: record.id, deliveries: block.deliveries };
  });
  const slots = new DueSlots(store, requestedKind, now, (record) => ({
    blockId: null,
    deliveries: [parseRequested(record)],
  }));
  const blocks = new DeliveryBlocks(store, blockSlots, memory);

  const putRequested = async (delivery: DeliveryRecord, replaces: string, nowMs: number): Promise<PutResult> => {
    const write = requestedWrite(delivery, replaces, nowMs);
    if (delivery.status !== 'PENDING') return store.put(write);
    const openSlot = () => slots.open(delivery.subscriptionId, pendingOrder(delivery));
    // Nothing repeats this write after a crash. So the slot is opened before the write, and again after it.
    await openSlot();
    const put = await store.put(write);
    await afterPartialWrite(openSlot());
    return put;
  };

  return {
    get: async (walk: Walk, subscriptionId: string, id: string): Promise<DeliveryRecord | null> => {
      const own = await store.get(requestedKind, id);
      if (own !== null) return decodeStored(own, () => parseRequested(own));
      return blockDelivery(boundedRecords(walk, store), subscriptionId, id);
    },
    /** Records deliveries that the log makes. Returns how many of them are new. */
    record: (range: DeliveryRange) => blocks.record(range),
    /** Records a delivery that the owner asks for. Returns false if it exists. */
    create: async (delivery: DeliveryRecord) =>
      (await putRequested(delivery, 'absent', Date.parse(delivery.createdAt))).ok,
    /** Returns false if the delivery was changed meanwhile. `nowMs`: Unix time, ms. */
    replace: async ({ delivery, blockId, version }: HeldDelivery, changed: DeliveryRecord, nowMs: number) =>
      blockId === null
        ? (await putRequested(changed, version, nowMs)).ok
        : blocks.change(blockId, delivery, changed, nowMs),
    /** In the order of recording. */
    ofSubscription: (walk: Walk, subscriptionId: string, page: Omit<FindPage, 'after'>) =>
      listDeliveries(boundedRecords(walk, store), subscriptionId, page),
    /** The deliveries to send at `at` (ISO), the first `limit` in the order of sending. */
    pending: async (subscriptionId: string, limit: number, at: string): Promise<DueDeliveries> => {
      const [own, ofLog] = await Promise.all([
        slots.pending(subscriptionId, limit, at),
        blockSlots.pending(subscriptionId, limit, at),
      ]);
      const due = [...own.due, ...ofLog.due].sort((a, b) => (a.order < b.order ? -1 : Number(a.order > b.order)));
      const held = due
        .slice(0, limit)
        .map(({ delivery, blockId, version }): HeldDelivery => ({ delivery, blockId, version }));
      return { due: held, next: earlier(own.next, ofLog.next) };
    },
  };
}
