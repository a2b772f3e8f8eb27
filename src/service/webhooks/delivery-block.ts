import { seqOrder } from '../../domain/projection.ts';
import type { RecordWrite } from '../../store/record-store.ts';
import { type DeliveryRecord, finishedKeptMs, pendingKeptMs, pendingOrder } from './delivery-record.ts';

/**
 * Deliveries of neighbouring events of one ledger to one subscription, fanned out together and kept in one record: a record for each would
 * cost more than sending it.
 */
export interface DeliveryBlock {
  readonly subscriptionId: string;
  readonly ledgerId: string;
  /** The range of the ledger that it was made of; there is one block of a subscription and ledger that starts at a seq. */
  readonly fromSeq: number;
  readonly throughSeq: number;
  readonly createdAt: string;
  /** Not empty, in the order of the ledger. */
  readonly deliveries: readonly DeliveryRecord[];
}

export const blockKind = 'webhook_deliveries';

/** Deliveries of one block at most: writing it again costs what it holds. */
const blockDeliveriesMax = 64;
/** From the first event of a block to its last at most, so that a delivery's block is found by the time in its id. */
export const blockSpanMs = 60 * 60_000;

/** Subscriptions of one ledger stand side by side: their blocks are written together. */
export function blockIdOf(block: Pick<DeliveryBlock, 'subscriptionId' | 'ledgerId' | 'fromSeq'>): string {
  return `${block.ledgerId}|${seqOrder(block.fromSeq)}|${block.subscriptionId}`;
}

/** How many of these deliveries, from the first on, one block takes. */
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
type StoredBlock = Omit<DeliveryBlock, 'deliveries'> & { readonly deliveries: readonly StoredDelivery[] };

export function parseBlock(value: string): DeliveryBlock {
  const stored = JSON.parse(value) as StoredBlock;
  const { subscriptionId, ledgerId, createdAt } = stored;
  const deliveries = stored.deliveries.map(
    ([id, eventId, eventType, seq, eventCreatedAt, ...state]): DeliveryRecord => {
      const [status, attempts, lastError, lastResponseStatus, nextAttemptAt, deliveredAt] = state;
      const place = { ledgerId, seq };
      const what = { id, subscriptionId, eventId, eventType, place, eventCreatedAt, origin: 'log', createdAt } as const;
      return { ...what, status, attempts, lastError, lastResponseStatus, nextAttemptAt, deliveredAt };
    },
  );
  return { ...stored, deliveries };
}

function formatBlock(block: DeliveryBlock): string {
  const deliveries = block.deliveries.map(
    (of): StoredDelivery => [
      ...([of.id, of.eventId, of.eventType, of.place?.seq ?? 0, of.eventCreatedAt, of.status, of.attempts] as const),
      ...([of.lastError, of.lastResponseStatus, of.nextAttemptAt, of.deliveredAt] as const),
    ],
  );
  return JSON.stringify({ ...block, deliveries } satisfies StoredBlock);
}

/** How a block is put. `now` in milliseconds since 1970. */
export function blockWrite(block: DeliveryBlock, replaces: string, now: number): RecordWrite {
  const { subscriptionId: value, createdAt, deliveries } = block;
  const listed = `${createdAt}|${seqOrder(block.fromSeq)}|${deliveries.length}`;
  const lookups = [
    { name: 'subscription', value, order: listed },
    { name: 'last_event', value, order: deliveries.at(-1)?.eventCreatedAt ?? createdAt },
  ];
  let first: string | null = null;
  for (const delivery of deliveries) {
    if (delivery.status !== 'PENDING') continue;
    const order = pendingOrder(delivery);
    if (first === null || order < first) first = order;
  }
  if (first !== null) lookups.push({ name: 'pending', value, order: first });
  const expiresAt = first === null ? now + finishedKeptMs : Date.parse(createdAt) + pendingKeptMs;
  return { kind: blockKind, id: blockIdOf(block), replaces, value: formatBlock(block), lookups, expiresAt };
}

/** How many deliveries a block holds, told from the order that it is listed by. */
export function blockLengthOf(listedOrder: string): number {
  return Number(listedOrder.slice(listedOrder.lastIndexOf('|') + 1));
}
