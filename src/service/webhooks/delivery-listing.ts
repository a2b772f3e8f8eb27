import { isoTime } from '../../domain/time.ts';
import { uuidV7Time } from '../../domain/uuid.ts';
import type { FindPage, FoundRecord, RecordStore } from '../../store/record-store.ts';
import { blockKind, blockLengthOf, blockSpanMs, parseBlock } from './delivery-block.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { ownKind, parseOwn } from './own-deliveries.ts';

const blocksAtOnce = 8;
const ownAtOnce = 100;

/** What stands in one record of a subscription's list: a block of deliveries, or one that the owner asked for. */
interface Listed {
  readonly order: string;
  readonly length: number;
  /** In the order of the ledger. */
  deliveries(): readonly DeliveryRecord[];
}

/** A subscription's deliveries by the time when they were recorded. What lies before `offset` is counted, not parsed. */
export async function listDeliveries(
  store: RecordStore,
  subscriptionId: string,
  { limit, offset = 0, descending = false }: Omit<FindPage, 'after'>,
): Promise<DeliveryRecord[]> {
  const found: DeliveryRecord[] = [];
  let skip = offset;
  for await (const listed of merged(
    recordsOf(store, blockKind, subscriptionId, descending, blocksAtOnce),
    recordsOf(store, ownKind, subscriptionId, descending, ownAtOnce),
    descending,
  )) {
    if (skip >= listed.length) {
      skip -= listed.length;
      continue;
    }
    const deliveries = listed.deliveries();
    found.push(...(descending ? deliveries.toReversed() : deliveries).slice(skip, skip + limit - found.length));
    skip = 0;
    if (found.length >= limit) break;
  }
  return found;
}

/** A delivery that the log has made, by its id; null if the subscription has none of this id. */
export async function blockDelivery(
  store: RecordStore,
  subscriptionId: string,
  id: string,
): Promise<DeliveryRecord | null> {
  const timeMs = uuidV7Time(id);
  if (timeMs === null) return null;
  // Its event's time is in the id, and its block's last event is that one or lies a span behind it at most.
  const latest = isoTime(timeMs + blockSpanMs);
  let after = { order: isoTime(Math.max(0, timeMs - 1)), id };
  for (;;) {
    const lookup = { name: 'last_event', value: subscriptionId };
    const found = await store.find(blockKind, lookup, { limit: blocksAtOnce, after });
    for (const { order, value } of found) {
      if (order > latest) return null;
      const delivery = parseBlock(value).deliveries.find((one) => one.id === id);
      if (delivery !== undefined) return delivery;
    }
    const last = found.at(-1);
    if (last === undefined || found.length < blocksAtOnce) return null;
    after = { order: last.order, id: last.id };
  }
}

async function* recordsOf(
  store: RecordStore,
  kind: string,
  subscriptionId: string,
  descending: boolean,
  limit: number,
): AsyncGenerator<Listed> {
  let after: { order: string; id: string } | undefined;
  for (;;) {
    const page = { limit, descending, ...(after === undefined ? {} : { after }) };
    const found = await store.find(kind, { name: 'subscription', value: subscriptionId }, page);
    for (const record of found) yield listedOf(kind, record);
    const last = found.at(-1);
    if (last === undefined || found.length < limit) return;
    after = { order: last.order, id: last.id };
  }
}

function listedOf(kind: string, { order, value }: FoundRecord): Listed {
  return kind === blockKind
    ? { order, length: blockLengthOf(order), deliveries: () => parseBlock(value).deliveries }
    : { order, length: 1, deliveries: () => [parseOwn(value)] };
}

async function* merged(
  one: AsyncGenerator<Listed>,
  other: AsyncGenerator<Listed>,
  descending: boolean,
): AsyncGenerator<Listed> {
  let [a, b] = [await one.next(), await other.next()];
  while (!a.done || !b.done) {
    const isOne = b.done || (!a.done && a.value.order < b.value.order !== descending);
    if (isOne && !a.done) {
      yield a.value;
      a = await one.next();
    } else if (!b.done) {
      yield b.value;
      b = await other.next();
    }
  }
}
