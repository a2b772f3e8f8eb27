import { RecentMap } from '../../runtime/collections/recent-map.ts';
import type { FoundRecord, LookupName, RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver } from '../../store/unreadable-record.ts';
import { type BoundedRecords, boundedRecords } from '../walking/bounded-stores.ts';
import { unboundedWalk } from '../walking/walk.ts';
import {
  type DeliveryRecord,
  dueTimeOf,
  isDue,
  pendingKeptMs,
  pendingOrder,
  slotOf,
  slotValue,
} from './delivery-record.ts';
import { earlier, type HeldDelivery } from './due-deliveries.ts';

const minuteMs = 60_000;
const slotMs = 10 * minuteMs;
/** How long after its end an opened slot is known to be open, ms. A slot may be closed after twice that time. */
const knownOpenMs = 5 * minuteMs;
const slotsAtOnce = 16;
/** Beyond it, a subscription costs one more look-up when its deliveries are read. */
export const movedMax = 16_384;
const recordsAtFirst = 2;
const recordsAtOnceMax = 32;

/** What a record in a slot holds: the deliveries of a block, or one delivery, whose `blockId` is null. */
interface SlotRecord {
  readonly blockId: string | null;
  readonly deliveries: readonly DeliveryRecord[];
}

interface PendingDelivery extends HeldDelivery {
  /** Sort key: since when the delivery waits, or when its next attempt is due (ISO), followed by its ledger and seq. */
  readonly order: string;
}

/** See DueDeliveries. */
interface DueInSlots {
  readonly due: readonly PendingDelivery[];
  readonly next: string | null;
}

/**
 * Records of deliveries by the time when they are due, in slots of ten minutes. A finished delivery leaves its slot. A
 * store that keeps deleted rows for hours would read all of them each time, so old slots are closed and not read any
 * more.
 *
 * A subscription's open slots have a record each. It is written, or written again, whenever something is put into a
 * slot. A slot that is found empty long after its end is closed, unless it was opened again meanwhile.
 */
export class DueSlots {
  readonly #store: RecordStore;
  /** Reads what may be much. They share the event loop budget with all long reads. */
  readonly #reads: BoundedRecords;
  readonly #kind: string;
  readonly #openKind: string;
  readonly #now: () => number;
  readonly #parse: (record: FoundRecord) => SlotRecord;
  /** Subscriptions by slot, of slots that are too young to be closed. */
  readonly #opened = new Map<string, Set<string>>();
  /** Subscriptions without records from before there were slots. */
  readonly #moved = new RecentMap<string, true>(movedMax);

  /** `kind` of the records. `now`: Unix time, ms. `parse` throws if a record is damaged. */
  constructor(store: RecordStore, kind: string, now: () => number, parse: (record: FoundRecord) => SlotRecord) {
    this.#store = store;
    this.#reads = boundedRecords(unboundedWalk(), store);
    this.#kind = kind;
    this.#openKind = `${kind}_slot`;
    this.#now = now;
    this.#parse = parse;
  }

  /**
   * Opens the slot of a sort key. Resolves when records in the slot are found. A record that is put into the slot
   * afterwards must be stored within minutes.
   */
  async open(subscriptionId: string, order: string): Promise<void> {
    const slot = slotOf(order);
    const nowMs = this.#now();
    const isYoung = nowMs < slotEndMs(slot) + knownOpenMs;
    if (isYoung && this.#opened.get(slot)?.has(subscriptionId) === true) return;
    const write = {
      kind: this.#openKind,
      id: slotValue(subscriptionId, slot),
      value: '{}',
      lookups: [{ name: 'subscription', value: subscriptionId, order: slot }],
      expiresAt: Math.max(nowMs, slotEndMs(slot)) + pendingKeptMs,
    };
    let put = await this.#store.put({ ...write, replaces: 'absent' });
    // Another node may be about to close an old slot: a new version prevents it.
    while (!put.ok && !isYoung) put = await this.#store.put({ ...write, replaces: put.current?.version ?? 'absent' });
    if (isYoung) this.#remember(subscriptionId, slot, nowMs);
  }

  /** The deliveries to send at `now` (ISO): at least `limit` of them if there are so many. */
  async pending(subscriptionId: string, limit: number, now: string): Promise<DueInSlots> {
    const due: PendingDelivery[] = [];
    let next: string | null = null;
    let atOnce = Math.min(recordsAtFirst, limit);
    for await (const page of this.#pages(subscriptionId, () => atOnce)) {
      atOnce = Math.min(recordsAtOnceMax, atOnce * 2);
      for (const record of page) {
        const parsed = decodeOrPassOver(record, () => this.#parse(record));
        for (const delivery of parsed?.deliveries ?? []) {
          if (delivery.status !== 'PENDING') continue;
          const order = pendingOrder(delivery);
          const blockId = parsed?.blockId ?? null;
          if (isDue(delivery, order, now)) due.push({ delivery, blockId, version: record.version, order });
          else next = earlier(next, dueTimeOf(order));
        }
      }
      const last = dueTimeOf(page.at(-1)?.order ?? '');
      if (last > now) return { due, next: earlier(next, last) };
      if (due.length >= limit) break;
    }
    return { due, next };
  }

  /** A subscription's PENDING records in their order, in pages that are never empty. */
  async *#pages(subscriptionId: string, pageLength: () => number): AsyncGenerator<readonly FoundRecord[]> {
    const pending = (value: string) => this.#found(this.#kind, { name: 'pending', value }, pageLength);
    if (this.#moved.get(subscriptionId) === undefined && (yield* pending(subscriptionId)))
      this.#moved.set(subscriptionId, true);
    const slots = { name: 'subscription', value: subscriptionId };
    for await (const page of this.#found(this.#openKind, slots, () => slotsAtOnce)) {
      for (const slot of page) {
        const isEmpty = yield* pending(slot.id);
        if (isEmpty && slotEndMs(slot.order) + 2 * knownOpenMs < this.#now())
          await this.#store.remove(this.#openKind, slot.id, slot.version);
      }
    }
  }

  /** The records of a look-up, in pages that are never empty. Returns whether there were none. */
  async *#found(
    kind: string,
    lookup: LookupName,
    pageLength: () => number,
  ): AsyncGenerator<readonly FoundRecord[], boolean> {
    let after: FoundRecord | undefined;
    for (;;) {
      const limit = pageLength();
      const page = { limit, charsMax: Number.POSITIVE_INFINITY, ...(after === undefined ? {} : { after }) };
      const found = await this.#reads.find(kind, lookup, page);
      if (found.length === 0) return after === undefined;
      yield found;
      if (found.length < limit) return false;
      after = found.at(-1);
    }
  }

  #remember(subscriptionId: string, slot: string, nowMs: number): void {
    const opened = this.#opened.get(slot);
    if (opened !== undefined) {
      opened.add(subscriptionId);
      return;
    }
    for (const old of this.#opened.keys()) if (slotEndMs(old) + knownOpenMs <= nowMs) this.#opened.delete(old);
    this.#opened.set(slot, new Set([subscriptionId]));
  }
}

function slotEndMs(slot: string): number {
  return Date.parse(`${slot}0:00.000Z`) + slotMs;
}
