import { seqOrder } from '../../domain/event/projection.ts';
import type { RecordWrite, StoredRecord } from '../../store/record-store.ts';
import { decodeOrPassOver } from '../../store/unreadable-record.ts';
import { count, list, parserOf, text, time } from '../records/record-form.ts';
import {
  checkDelivery,
  type DeliveryRecord,
  finishedKeptMs,
  isNew,
  listedOrder,
  newOrder,
  pendingKeptMs,
  pendingLookup,
  pendingOrder,
} from './delivery-record.ts';

/** Deliveries of neighbouring events of one ledger to one subscription in one record: one each would cost too much. */
export interface DeliveryBlock {
  readonly subscriptionId: string;
  readonly ledgerId: string;
  /** The events that the block covers. A subscription and ledger have at most one block that begins at a seq. */
  readonly fromSeq: number;
  readonly throughSeq: number;
  readonly createdAt: string;
  /** Whether the block is in a slot of DueSlots while it has deliveries that are PENDING. */
  readonly inSlot: boolean;
  /** Not empty, in the order of the ledger. */
  readonly deliveries: readonly DeliveryRecord[];
}

export const blockKind = 'webhook_deliveries';

/** Deliveries of one block at most: each change writes the whole block. */
const blockDeliveriesMax = 64;
/** Time from a block's first event to its last at most: a delivery's block is found by the time in its id. */
export const blockSpanMs = 60 * 60_000;

/** The ids of one ledger's blocks sort next to each other: the blocks of its subscriptions are written together. */
function blockIdOf(block: Pick<DeliveryBlock, 'subscriptionId' | 'ledgerId' | 'fromSeq'>): string {
  return `${block.ledgerId}|${seqOrder(block.fromSeq)}|${block.subscriptionId}`;
}

export function blockLength(deliveries: readonly DeliveryRecord[]): number {
  const firstMs = Date.parse(deliveries[0]?.eventCreatedAt ?? '');
  const end = deliveries.findIndex(({ eventCreatedAt }) => Date.parse(eventCreatedAt) > firstMs + blockSpanMs);
  return Math.min(blockDeliveriesMax, end < 0 ? deliveries.length : end);
}

type DeliveryState = readonly [
  status: DeliveryRecord['status'],
  attempts: number,
  lastError: string | null,
  lastResponseStatus: number | null,
  nextAttemptAt: string | null,
  deliveredAt: string | null,
];
type StoredDelivery = readonly [
  id: string,
  eventId: string,
  eventType: string,
  seq: number,
  eventCreatedAt: string,
  ...DeliveryState,
];
type StoredBlock = Omit<DeliveryBlock, 'deliveries' | 'inSlot'> & {
  /** Missing in blocks that were written before there were slots. */
  readonly inSlot?: boolean;
  readonly deliveries: readonly StoredDelivery[];
};

const parseStored = parserOf<StoredBlock>({
  subscriptionId: text,
  ledgerId: text,
  fromSeq: count,
  throughSeq: count,
  createdAt: time,
  deliveries: list,
});

/** Throws if the value is no block with this id. */
export function parseBlock({ id: blockId, value }: Pick<StoredRecord, 'id' | 'value'>): DeliveryBlock {
  const stored = parseStored(value);
  if (blockIdOf(stored) !== blockId || stored.deliveries.length === 0) throw new TypeError('This is no such block.');
  const { subscriptionId, ledgerId, createdAt } = stored;
  const deliveries = stored.deliveries.map(
    ([id, eventId, eventType, seq, eventCreatedAt, ...state]): DeliveryRecord => {
      const [status, attempts, lastError, lastResponseStatus, nextAttemptAt, deliveredAt] = state;
      checkDelivery({ id, eventId, eventType, eventCreatedAt, status, attempts, nextAttemptAt });
      const place = { ledgerId, seq };
      const what = { id, subscriptionId, eventId, eventType, place, eventCreatedAt, origin: 'log', createdAt } as const;
      return { ...what, status, attempts, lastError, lastResponseStatus, nextAttemptAt, deliveredAt };
    },
  );
  return { ...stored, inSlot: stored.inSlot ?? false, deliveries };
}

/** The block of a record. undefined if there is no record, or if it is damaged, which is reported. */
export function readBlock(record: StoredRecord | null): DeliveryBlock | undefined {
  return record === null ? undefined : decodeOrPassOver(record, () => parseBlock(record));
}

function formatBlock(block: DeliveryBlock): string {
  const deliveries = block.deliveries.map(
    (of): StoredDelivery => [
      ...([of.id, of.eventId, of.eventType, of.place?.seq ?? 0, of.eventCreatedAt, of.status, of.attempts] as const),
      ...([of.lastError, of.lastResponseStatus, of.nextAttemptAt, of.deliveredAt] as const),
    ],
  );
  return JSON.stringify({ ...block, inSlot: true, deliveries } satisfies StoredBlock);
}

/**
 * The sort key of a block, never after its first PENDING delivery. null if none is PENDING. While some deliveries are
 * new it is the key of the block's first delivery: a block that moved at each attempt would leave deleted rows behind.
 */
export function blockOrder({ deliveries }: DeliveryBlock): string | null {
  const pending = deliveries.filter(({ status }) => status === 'PENDING');
  const [first] = deliveries;
  if (first !== undefined && pending.some(isNew)) return newOrder(first);
  return pending.map(pendingOrder).sort()[0] ?? null;
}

export function blockWrite(block: DeliveryBlock, replaces: string, now: number): RecordWrite {
  const { subscriptionId: value, createdAt, deliveries } = block;
  const listed = `${listedOrder(createdAt, block.fromSeq)}|${deliveries.length}`;
  const lookups = [
    { name: 'subscription', value, order: listed },
    { name: 'last_event', value, order: deliveries.at(-1)?.eventCreatedAt ?? createdAt },
  ];
  const due = blockOrder(block);
  if (due !== null) lookups.push(pendingLookup(value, due));
  const expiresAt = due === null ? now + finishedKeptMs : Date.parse(createdAt) + pendingKeptMs;
  return { kind: blockKind, id: blockIdOf(block), replaces, value: formatBlock(block), lookups, expiresAt };
}

export function blockLengthOf(listedOrder: string): number {
  return Number(listedOrder.slice(listedOrder.lastIndexOf('|') + 1));
}
