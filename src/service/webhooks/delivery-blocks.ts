import { CountedRecentMap } from '../../runtime/limits/counted-recent-map.ts';
import type { MemoryBudget } from '../../runtime/limits/memory-budget.ts';
import { queueBounds } from '../../runtime/limits/queue-bounds.ts';
import type { RecordStore, StoredRecord } from '../../store/record-store.ts';
import { blockKind, blockLength, blockOrder, blockWrite, type DeliveryBlock, readBlock } from './delivery-block.ts';
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

/** A block as it was read or written. A write of it is refused if the record has another version by then. */
interface KnownBlock {
  readonly block: DeliveryBlock;
  readonly version: string;
}

/** What a block takes in memory for each character of its record, measured: 1.5 to 2.3 bytes. */
const keptBytesPerChar = 2.5;

/**
 * Delivery blocks in a store. Changes of a block that arrive while it is being written are written together. The latest
 * blocks are kept, so that most changes need not read theirs.
 */
export class DeliveryBlocks {
  readonly #store: RecordStore;
  readonly #slots: DueSlots;
  readonly #kept: CountedRecentMap<string, KnownBlock>;
  /** Changes that wait for the next write, by the ids of the blocks that are being written. */
  readonly #waiting = new Map<string, Change[]>();

  constructor(store: RecordStore, slots: DueSlots, memory: MemoryBudget) {
    this.#store = store;
    this.#slots = slots;
    this.#kept = new CountedRecentMap(memory, queueBounds(memory.maxBytes).deliveryBlocksMaxBytes);
  }

  /** Keeps a block that was read or written, for changes of its deliveries. `chars`: of its record. */
  keep(blockId: string, known: KnownBlock, chars: number): void {
    this.#kept.set(blockId, known, chars * keptBytesPerChar);
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
  change(blockId: string, before: DeliveryRecord, after: DeliveryRecord, nowMs: number): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const change = { before, after, nowMs, resolve, reject };
    const waiting = this.#waiting.get(blockId);
    if (waiting !== undefined) waiting.push(change);
    else {
      const changes = [change];
      this.#waiting.set(blockId, changes);
      void this.#writeAll(blockId, changes);
    }
    return promise;
  }

  async #writeAll(blockId: string, waiting: Change[]): Promise<void> {
    // Changes that are made at the same time are written together.
    await null;
    while (waiting.length > 0) {
      const changes = waiting.splice(0);
      try {
        const taken = await this.#write(blockId, changes);
        for (const change of changes) change.resolve(taken.has(change));
      } catch (error) {
        for (const change of changes) change.reject(error);
      }
    }
    this.#waiting.delete(blockId);
  }

  /** Writes changes. Returns those that are in the store now. */
  async #write(blockId: string, changes: readonly Change[]): Promise<ReadonlySet<Change>> {
    let known = this.#kept.get(blockId) ?? knownBlock(await this.#store.get(blockKind, blockId));
    while (known !== null) {
      const { block: before, version } = known;
      const taken = new Set<Change>();
      const block = { ...changedBlock(before, changes, taken), inSlot: true };
      const order = blockOrder(block);
      const moves = !before.inSlot || slotOf(blockOrder(before) ?? '') !== slotOf(order ?? '');
      // Nothing repeats this write after a crash. So the new slot is opened before the write, and again after it.
      if (moves) await this.#openSlot(block);
      // Written even if no change is taken: only that shows whether the known block is the stored one.
      const write = blockWrite(block, version, changes[0]?.nowMs ?? 0);
      const put = await this.#store.put(write);
      if (put.ok) {
        if (order === null) this.#kept.delete(blockId);
        else this.keep(blockId, { block, version: put.version }, write.value.length);
        if (moves) await this.#openSlot(block);
        return taken;
      }
      known = knownBlock(put.current);
    }
    this.#kept.delete(blockId);
    return new Set();
  }

  async #openSlot(block: DeliveryBlock): Promise<void> {
    const order = blockOrder(block);
    if (order !== null) await this.#slots.open(block.subscriptionId, order);
  }
}

/** null if there is no record, or if it is damaged. */
function knownBlock(record: StoredRecord | null): KnownBlock | null {
  const block = readBlock(record);
  return record === null || block === undefined ? null : { block, version: record.version };
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
