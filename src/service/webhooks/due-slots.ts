import { RecentMap } from '../../runtime/collections/recent-map.ts';
import type { FoundRecord, LookupName, RecordStore } from '../../store/record-store.ts';
import { decodeOrPassOver } from '../../store/unreadable-record.ts';
import { type BoundedRecords, boundedRecords } from '../walking/bounded-stores.ts';
import { unboundedWalk } from '../walking/walk.ts';
import type { DeliveryBlock } from './delivery-block.ts';
import {
  type DeliveryRecord,
  dueTimeOf,
  isDue,
  isNew,
  ledgerOfLookup,
  pendingKeptMs,
  pendingOrder,
  slotOf,
  slotValue,
} from './delivery-record.ts';
import { type DueDeliveries, earlier, type PendingDelivery } from './due-deliveries.ts';

const minuteMs = 60_000;
const slotMs = 10 * minuteMs;
/** How long after its end an opened slot is known to be open, ms. A slot may be closed after twice that time. */
const knownOpenMs = 5 * minuteMs;
const slotsAtOnce = 16;
/** Beyond it, a subscription costs one more look-up when its deliveries are read. */
export const movedMax = 16_384;
const recordsAtFirst = 2;
const recordsAtOnceMax = 32;
/** Deliveries of a ledger that are read in its turn, of those that wait behind many others. */
const ofLedgerInTurn = 8;
/** Subscriptions whose last turn is remembered. */
const turnsMax = 10_000;

/** What a record in a slot holds: a block with its deliveries, or one delivery. */
interface SlotRecord {
  readonly block: DeliveryBlock | null;
  readonly deliveries: readonly DeliveryRecord[];
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
  /** The ledger that had the last turn, by subscription. */
  readonly #turns = new RecentMap<string, string>(turnsMax);
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

  /**
   * The deliveries to send at `now` (ISO): all, or `limit` of them, of which half are of ledgers in turn. Those of one
   * ledger are its first.
   */
  async pending(subscriptionId: string, limit: number, now: string): Promise<DueDeliveries> {
    const due: PendingDelivery[] = [];
    let next: string | null = null;
    let atOnce = recordsAtFirst;
    let isByLedger = true;
    for await (const page of this.#pages(subscriptionId, () => atOnce)) {
      atOnce = Math.min(recordsAtOnceMax, atOnce * 2);
      for (const record of page) {
        for (const pending of this.#pendingIn(record)) {
          if (isDue(pending.delivery, pending.order, now)) due.push(pending);
          else next = earlier(next, dueTimeOf(pending.order));
          if (isNew(pending.delivery) && ledgerOfLookup(record.order) === null) isByLedger = false;
        }
      }
      const last = page.at(-1)?.order ?? '';
      const lastTime = ledgerOfLookup(last) === null ? dueTimeOf(last) : '';
      if (lastTime > now) return { due, next: earlier(next, lastTime) };
      if (due.length < limit) continue;
      // Records from before they were sorted by ledger come first: a later record of their ledger must not overtake.
      const others = isByLedger ? await this.#inTurn(subscriptionId, limit / 2, now) : [];
      const taken = new Set(others.map(({ delivery }) => delivery.id));
      return { due: [...others, ...due.filter(({ delivery }) => !taken.has(delivery.id))].slice(0, limit), next };
    }
    return { due, next };
  }

  #pendingIn(record: FoundRecord): readonly PendingDelivery[] {
    const parsed = decodeOrPassOver(record, () => this.#parse(record));
    if (parsed === undefined) return [];
    const { block, deliveries } = parsed;
    return deliveries
      .filter(({ status }) => status === 'PENDING')
      .map((delivery) => ({ delivery, block, version: record.version, order: pendingOrder(delivery) }));
  }

  /**
   * The first retries, and the first deliveries of some ledgers, `limit` in all. Ledgers take turns from one call to
   * the next. So the events of a ledger do not wait for those of others, however many these are.
   */
  async #inTurn(subscriptionId: string, limit: number, now: string): Promise<readonly PendingDelivery[]> {
    const slots = await this.#slotsOf(subscriptionId);
    const found = await this.#retries(slots, limit / 2, now);
    const last = this.#turns.get(subscriptionId) ?? '';
    for (const start of last === '' ? [last] : [last, '']) {
      for await (const { ledgerId, deliveries } of this.#ledgersBehind(start, slots, now)) {
        if (found.length >= limit || (start < last && ledgerId > last)) return found.slice(0, limit);
        found.push(...deliveries);
        this.#turns.set(subscriptionId, ledgerId);
      }
    }
    return found.slice(0, limit);
  }

  /** The first retries that are due. They follow the ledgers in each slot, whose ids begin with a 0. */
  async #retries(slots: readonly string[], limit: number, now: string): Promise<PendingDelivery[]> {
    const found: PendingDelivery[] = [];
    for (const slot of slots) {
      const lookup = { name: 'pending', value: slot };
      const page = { limit: recordsAtFirst, charsMax: Number.POSITIVE_INFINITY, after: { order: '1', id: '' } };
      for (const record of await this.#reads.find(this.#kind, lookup, page))
        found.push(...this.#pendingIn(record).filter(({ delivery, order }) => isDue(delivery, order, now)));
      if (found.length >= limit) break;
    }
    return found.slice(0, limit);
  }

  /** The ledgers behind one in the order of their ids, with the first deliveries of each. */
  async *#ledgersBehind(
    start: string,
    slots: readonly string[],
    now: string,
  ): AsyncGenerator<{ readonly ledgerId: string; readonly deliveries: readonly PendingDelivery[] }> {
    /** The first record of the next ledger in each slot. */
    const heads = new Map<string, FoundRecord>();
    const goBehind = async (ledgerId: string, slot: string) => {
      const head = await this.#firstBehind(ledgerId, slot);
      if (head === null) heads.delete(slot);
      else heads.set(slot, head);
    };
    for (const slot of slots) await goBehind(start, slot);
    while (heads.size > 0) {
      const ledgers = [...heads.values()].map(({ order }) => ledgerOfLookup(order) ?? '');
      const ledgerId = ledgers.reduce((one, other) => (one < other ? one : other));
      const ofLedger = [...heads].filter(([, { order }]) => ledgerOfLookup(order) === ledgerId);
      const deliveries = ofLedger
        .map(([, head]) => this.#pendingIn(head).filter(({ delivery, order }) => isDue(delivery, order, now)))
        .find(({ length }) => length > 0);
      yield { ledgerId, deliveries: deliveries?.slice(0, ofLedgerInTurn) ?? [] };
      for (const [slot] of ofLedger) await goBehind(ledgerId, slot);
    }
  }

  async #firstBehind(ledgerId: string, slot: string): Promise<FoundRecord | null> {
    const after = ledgerId === '' ? {} : { after: { order: `${ledgerId}|~`, id: '' } };
    const page = { limit: 1, charsMax: Number.POSITIVE_INFINITY, ...after };
    const [first] = await this.#reads.find(this.#kind, { name: 'pending', value: slot }, page);
    return first === undefined || ledgerOfLookup(first.order) === null ? null : first;
  }

  async #slotsOf(subscriptionId: string): Promise<readonly string[]> {
    const slots: string[] = [];
    const lookup = { name: 'subscription', value: subscriptionId };
    for await (const page of this.#found(this.#openKind, lookup, () => slotsAtOnce))
      slots.push(...page.map(({ id }) => id));
    return slots;
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
