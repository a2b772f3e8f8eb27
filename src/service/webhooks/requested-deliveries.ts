import { seqOrder } from '../../domain/event/projection.ts';
import type { PutResult, RecordStore, StoredRecord } from '../../store/record-store.ts';
import { decodeOrPassOver, parseMembers } from '../../store/unreadable-record.ts';
import { afterPartialWrite } from '../idempotency/partial-write.ts';
import {
  checkDelivery,
  type DeliveryRecord,
  dueTimeOf,
  finishedKeptMs,
  isDue,
  pendingKeptMs,
  pendingOrder,
} from './delivery-record.ts';
import { type DueDeliveries, earlier, type PendingDelivery } from './due-deliveries.ts';
import { DueSlots, pendingLookup } from './due-slots.ts';

/** Deliveries with a record of their own: those that a subscription's owner asks for (test, redeliver). */
export const requestedKind = 'webhook_delivery';

/** The deliveries with a record of their own, in a store. */
export class RequestedDeliveries {
  readonly #store: RecordStore;
  readonly #slots: DueSlots;

  /** `now` in milliseconds since 1970. */
  constructor(store: RecordStore, now: () => number) {
    this.#store = store;
    this.#slots = new DueSlots(store, requestedKind, now);
  }

  /** `replaces`: the version, or 'absent'. `now` in milliseconds since 1970. */
  async put(delivery: DeliveryRecord, replaces: string, now: number): Promise<PutResult> {
    const { id, subscriptionId: value } = delivery;
    const isPending = delivery.status === 'PENDING';
    const lookups = [{ name: 'subscription', value, order: ownListedOrder(delivery) }];
    const expiresAt = now + (isPending ? pendingKeptMs : finishedKeptMs);
    const write = { kind: requestedKind, id, replaces, value: JSON.stringify(delivery), lookups, expiresAt };
    if (!isPending) return this.#store.put(write);
    const order = pendingOrder(delivery);
    // Nothing repeats this write after a crash. So the slot is opened before the write, and again after it.
    await this.#slots.open(value, order);
    const put = await this.#store.put({ ...write, lookups: [...lookups, pendingLookup(value, order)] });
    await afterPartialWrite(this.#slots.open(value, order));
    return put;
  }

  /** The deliveries to send at `now` (ISO), the first `limit`. */
  async pending(subscriptionId: string, limit: number, now: string): Promise<DueDeliveries> {
    const due: PendingDelivery[] = [];
    let next: string | null = null;
    for await (const found of this.#slots.pages(subscriptionId, () => limit)) {
      for (const record of found) {
        const { version, order } = record;
        const delivery = decodeOrPassOver(record, () => parseRequested(record));
        if (delivery === undefined) continue;
        if (isDue(delivery, order, now)) due.push({ delivery, block: null, version, order });
        else next = earlier(next, dueTimeOf(order));
      }
      if (due.length >= limit || next !== null) break;
    }
    return { due, next };
  }
}

/** Throws if the value is no delivery with this id. */
export function parseRequested({ id, value }: Pick<StoredRecord, 'id' | 'value'>): DeliveryRecord {
  const delivery = parseMembers<DeliveryRecord>(value, { subscriptionId: 'text', createdAt: 'time' });
  checkDelivery(delivery);
  if (delivery.id !== id) throw new TypeError('This is another delivery.');
  return delivery;
}

function ownListedOrder(delivery: DeliveryRecord): string {
  return `${delivery.createdAt}|${seqOrder(delivery.place?.seq ?? 0)}`;
}
