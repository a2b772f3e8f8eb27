import type { RecordStore } from '../../store/record-store.ts';
import { blockIdOf, blockLength, blockOrder, blockWrite, type DeliveryBlock, readBlock } from './delivery-block.ts';
import { type DeliveryRecord, slotOf } from './delivery-record.ts';
import type { DueSlots } from './due-slots.ts';

export interface DeliveryRange {
  readonly subscriptionId: string;
  readonly ledgerId: string;
  readonly fromSeq: number;
  readonly throughSeq: number;
  /** Of the events that the subscription wants, in the order of the ledger, all with the same `createdAt`. */
  readonly deliveries: readonly DeliveryRecord[];
}

interface Change {
  readonly before: DeliveryRecord;
  readonly after: DeliveryRecord;
  readonly nowMs: number;
  resolve(taken: boolean): void;
  reject(error: unknown): void;
}

/** A block that is being written, with the changes that wait for the next write. */
interface OpenBlock {
  block: DeliveryBlock;
  version: string;
  waiting: Change[];
}

/** Delivery blocks in a store. Changes of a block that arrive while it is being written are written together. */
export class DeliveryBlocks {
  readonly #store: RecordStore;
  readonly #slots: DueSlots;
  readonly #open = new Map<string, OpenBlock>();

  constructor(store: RecordStore, slots: DueSlots) {
    this.#store = store;
    this.#slots = slots;
  }

  /**
   * Records a range of deliveries. After a crash fanning out starts again at the range's first seq. Deliveries that
   * were recorded before, in any number of blocks, are left as they are. Returns how many are new.
   */
  async record(range: DeliveryRange): Promise<number> {
    let written = 0;
    let { fromSeq, deliveries: rest } = range;
    while (rest.length > 0) {
      const deliveries = rest.slice(0, blockLength(rest));
      const isLast = deliveries.length === rest.length;
      const throughSeq = isLast ? range.throughSeq : seqOf(deliveries.at(-1));
      const createdAt = deliveries[0]?.createdAt ?? '';
      const { subscriptionId, ledgerId } = range;
      const block = { subscriptionId, ledgerId, fromSeq, throughSeq, createdAt, inSlot: true, deliveries };
      const stored = await this.#make(block);
      if (stored === block) written += deliveries.length;
      // If the node stops before this, the range is recorded again.
      await this.#openSlot(stored);
      fromSeq = stored.throughSeq + 1;
      rest = rest.filter((delivery) => seqOf(delivery) >= fromSeq);
    }
    return written;
  }

  /** Stores a block, or returns the one that exists. A damaged block is replaced: its deliveries cannot be sent. */
  async #make(block: DeliveryBlock): Promise<DeliveryBlock> {
    for (let replaces = 'absent'; ; ) {
      const put = await this.#store.put(blockWrite(block, replaces, Date.parse(block.createdAt)));
      if (put.ok) return block;
      const stored = readBlock(put.current);
      if (stored !== undefined) return stored;
      replaces = put.current?.version ?? 'absent';
    }
  }

  /** Changes a delivery of a block. Resolves with false if it was changed meanwhile. `nowMs`: Unix time, ms. */
  change(
    { block, version, delivery }: { block: DeliveryBlock; version: string; delivery: DeliveryRecord },
    after: DeliveryRecord,
    nowMs: number,
  ): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const change = { before: delivery, after, nowMs, resolve, reject };
    const id = blockIdOf(block);
    const open = this.#open.get(id);
    if (open !== undefined) open.waiting.push(change);
    else {
      const opened = { block, version, waiting: [change] };
      this.#open.set(id, opened);
      void this.#writeAll(id, opened);
    }
    return promise;
  }

  async #writeAll(id: string, open: OpenBlock): Promise<void> {
    // Changes that are made at the same time are written together.
    await null;
    while (open.waiting.length > 0) {
      const changes = open.waiting.splice(0);
      try {
        const taken = await this.#write(open, changes);
        for (const change of changes) change.resolve(taken.has(change));
      } catch (error) {
        for (const change of changes) change.reject(error);
      }
    }
    this.#open.delete(id);
  }

  /** Writes changes. Returns those that are in the store now. */
  async #write(open: OpenBlock, changes: readonly Change[]): Promise<ReadonlySet<Change>> {
    for (;;) {
      const taken = new Set<Change>();
      const block = changedBlock(open.block, changes, taken);
      const moves = !open.block.inSlot || slotOf(blockOrder(open.block) ?? '') !== slotOf(blockOrder(block) ?? '');
      // Nothing repeats this write after a crash. So the new slot is opened before the write, and again after it.
      if (moves) await this.#openSlot(block);
      const put = await this.#store.put(blockWrite(block, open.version, changes[0]?.nowMs ?? 0));
      if (put.ok) {
        open.block = { ...block, inSlot: true };
        open.version = put.version;
        if (moves) await this.#openSlot(open.block);
        return taken;
      }
      const stored = readBlock(put.current);
      if (put.current === null || stored === undefined) return new Set();
      open.block = stored;
      open.version = put.current.version;
    }
  }

  async #openSlot(block: DeliveryBlock): Promise<void> {
    const order = blockOrder(block);
    if (order !== null) await this.#slots.open(block.subscriptionId, order);
  }
}

function seqOf(delivery: DeliveryRecord | undefined): number {
  return delivery?.place?.seq ?? 0;
}

/**
 * Returns the block with the changes whose deliveries are as they were when they were read. These changes, and those
 * that were made before, are added to `taken`.
 */
function changedBlock(block: DeliveryBlock, changes: readonly Change[], taken: Set<Change>): DeliveryBlock {
  const byId = new Map(changes.map((change) => [change.after.id, change]));
  const deliveries = block.deliveries.map((delivery) => {
    const change = byId.get(delivery.id);
    if (change === undefined) return delivery;
    if (isSame(delivery, change.before) || isSame(delivery, change.after)) taken.add(change);
    return isSame(delivery, change.before) ? change.after : delivery;
  });
  return { ...block, deliveries };
}

function isSame(one: DeliveryRecord, other: DeliveryRecord): boolean {
  return one.status === other.status && one.attempts === other.attempts && one.nextAttemptAt === other.nextAttemptAt;
}
