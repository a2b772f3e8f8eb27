import type { FoundRecord, RecordStore } from '../../store/record-store.ts';
import { dueTimeOf, pendingKeptMs } from './delivery-record.ts';

/** Length of the prefix that ISO times of the same ten minutes share. */
const SLOT_CHARS = 15;
const minuteMs = 60_000;
const slotMs = 10 * minuteMs;
/** How long after its end an opened slot is known to be open, ms. A slot may be closed after twice that time. */
const knownOpenMs = 5 * minuteMs;
const closableMs = 2 * knownOpenMs;
const slotsAtOnce = 16;

/** The slot (ten minutes) of a sort key: the prefix of its ISO times. */
export function slotOf(order: string): string {
  return dueTimeOf(order).slice(0, SLOT_CHARS);
}

/** The look-up of a record among a subscription's PENDING ones. */
export function pendingLookup(subscriptionId: string, order: string) {
  return { name: 'pending', value: slotValue(subscriptionId, slotOf(order)), order };
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
  readonly #kind: string;
  readonly #openKind: string;
  readonly #now: () => number;
  /** Subscriptions by slot, of slots that are too young to be closed. */
  readonly #opened = new Map<string, Set<string>>();
  /** Subscriptions without records from before there were slots. */
  readonly #moved = new Set<string>();

  /** `kind` of the records. `now` in milliseconds since 1970. */
  constructor(store: RecordStore, kind: string, now: () => number) {
    this.#store = store;
    this.#kind = kind;
    this.#openKind = `${kind}_slot`;
    this.#now = now;
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
   * A subscription's PENDING records in their order, in pages that are never empty. `pageLength` is called before each
   * page for its maximum length.
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
      if (isEmpty && slotEndMs(slot.order) + closableMs < this.#now())
        await this.#store.remove(this.#openKind, slot.id, slot.version);
    }
  }

  /** Returns whether there were none. */
  #pending(value: string, pageLength: () => number) {
    return this.#found(this.#kind, { name: 'pending', value }, pageLength);
  }

  async *#open(subscriptionId: string): AsyncGenerator<FoundRecord> {
    const lookup = { name: 'subscription', value: subscriptionId };
    for await (const page of this.#found(this.#openKind, lookup, () => slotsAtOnce)) yield* page;
  }

  /** The records of a look-up, in pages that are never empty. Returns whether there were none. */
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
    for (const old of this.#opened.keys()) if (slotEndMs(old) + knownOpenMs <= nowMs) this.#opened.delete(old);
    this.#opened.set(slot, new Set([subscriptionId]));
  }
}

function slotValue(subscriptionId: string, slot: string): string {
  return `${subscriptionId}|${slot}`;
}

function slotEndMs(slot: string): number {
  return Date.parse(`${slot}0:00.000Z`) + slotMs;
}
