import type { FoundRecord, RecordStore } from '../../store/record-store.ts';
import { dueTimeOf, pendingKeptMs } from './delivery-record.ts';

/** Of an ISO time, what those of the same ten minutes have in common. */
const SLOT_CHARS = 15;
const minuteMs = 60_000;
const slotMs = 10 * minuteMs;
/** Until so long after its end a slot that was opened is known to stand open; it may be closed from twice as long on. */
const standsMs = 5 * minuteMs;
const settledMs = 2 * standsMs;
const slotsAtOnce = 16;

/** The ten minutes that a pending order begins in: the start of their ISO times. */
export function slotOf(order: string): string {
  return dueTimeOf(order).slice(0, SLOT_CHARS);
}

/** How a record is found among those of a subscription that are PENDING. */
export function pendingLookup(subscriptionId: string, order: string) {
  return { name: 'pending', value: slotValue(subscriptionId, slotOf(order)), order };
}

/**
 * Records of deliveries by the time when they are due, in slots of ten minutes. What is done leaves its slot, and a store that keeps deleted
 * rows for hours would read over all of them again each time if slots did not end: an old one is not looked into any more.
 *
 * Which slots of a subscription are open stands in a record of each. It is there, or is written again, once a slot holds something; a slot is
 * closed by whoever finds it empty long after its end, if nobody has opened it since it was found.
 */
export class DueSlots {
  readonly #store: RecordStore;
  readonly #kind: string;
  readonly #openKind: string;
  readonly #now: () => number;
  /** Subscriptions by slot, of those slots that nobody closes yet. */
  readonly #opened = new Map<string, Set<string>>();
  /** Subscriptions of which nothing stands as it did before there were slots. */
  readonly #moved = new Set<string>();

  /** `kind` of the records; `now` in milliseconds since 1970. */
  constructor(store: RecordStore, kind: string, now: () => number) {
    this.#store = store;
    this.#kind = kind;
    this.#openKind = `${kind}_slot`;
    this.#now = now;
  }

  /** Resolves when what stands at this order is found. What is put into a slot afterwards has to be there within minutes. */
  async open(subscriptionId: string, order: string): Promise<void> {
    const slot = slotOf(order);
    const nowMs = this.#now();
    const isYoung = nowMs < slotEndMs(slot) + standsMs;
    if (isYoung && this.#opened.get(slot)?.has(subscriptionId) === true) return;
    const write = {
      kind: this.#openKind,
      id: slotValue(subscriptionId, slot),
      value: '{}',
      lookups: [{ name: 'subscription', value: subscriptionId, order: slot }],
      expiresAt: Math.max(nowMs, slotEndMs(slot)) + pendingKeptMs,
    };
    let put = await this.#store.put({ ...write, replaces: 'absent' });
    // Somebody may be about to close an old one: a new version keeps them from it.
    while (!put.ok && !isYoung) put = await this.#store.put({ ...write, replaces: put.current?.version ?? 'absent' });
    if (isYoung) this.#remember(subscriptionId, slot, nowMs);
  }

  /**
   * What is PENDING of a subscription, in its order, in pages that are never empty. `pageLength` is asked before each how long it may be.
   */
  async *pages(
    subscriptionId: string,
    pageLength: () => number,
  ): AsyncGenerator<readonly [FoundRecord, ...FoundRecord[]]> {
    if (!this.#moved.has(subscriptionId)) {
      if (yield* this.#pending(subscriptionId, pageLength)) this.#moved.add(subscriptionId);
    }
    for await (const slot of this.#open(subscriptionId)) {
      const isEmpty = yield* this.#pending(slot.id, pageLength);
      if (isEmpty && slotEndMs(slot.order) + settledMs < this.#now())
        await this.#store.remove(this.#openKind, slot.id, slot.version);
    }
  }

  /** Answers whether there was nothing. */
  #pending(value: string, pageLength: () => number) {
    return this.#found(this.#kind, { name: 'pending', value }, pageLength);
  }

  async *#open(subscriptionId: string): AsyncGenerator<FoundRecord> {
    const lookup = { name: 'subscription', value: subscriptionId };
    for await (const page of this.#found(this.#openKind, lookup, () => slotsAtOnce)) yield* page;
  }

  /** What a look-up finds, in pages that are never empty. Answers whether there was nothing. */
  async *#found(
    kind: string,
    lookup: { readonly name: string; readonly value: string },
    pageLength: () => number,
  ): AsyncGenerator<readonly [FoundRecord, ...FoundRecord[]], boolean> {
    let after: FoundRecord | undefined;
    for (;;) {
      const limit = pageLength();
      const found = await this.#store.find(kind, lookup, { limit, ...(after === undefined ? {} : { after }) });
      const [first, ...rest] = found;
      if (first === undefined) return after === undefined;
      yield [first, ...rest];
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
    for (const old of this.#opened.keys()) if (slotEndMs(old) + standsMs <= nowMs) this.#opened.delete(old);
    this.#opened.set(slot, new Set([subscriptionId]));
  }
}

function slotValue(subscriptionId: string, slot: string): string {
  return `${subscriptionId}|${slot}`;
}

function slotEndMs(slot: string): number {
  return Date.parse(`${slot}0:00.000Z`) + slotMs;
}
