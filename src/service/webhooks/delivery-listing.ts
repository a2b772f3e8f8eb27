import { isoTime, isWritable } from '../../domain/values/time.ts';
import { uuidV7Time } from '../../domain/values/uuid.ts';
import { charsOf, pageCharsMax } from '../../store/pages.ts';
import type { FindPage, FoundRecord, LookupName } from '../../store/record-store.ts';
import { decodeOrPassOver } from '../../store/unreadable-record.ts';
import type { BoundedRecords } from '../walking/bounded-stores.ts';
import { blockKind, blockLengthOf, blockSpanMs, readBlock } from './delivery-block.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { parseRequested, requestedKind } from './requested-deliveries.ts';

/** Records of the first page, which is mostly enough, and of later ones. LMDB reads a page synchronously, in 3 ms. */
const recordsAtFirst = 8;
const recordsAtOnceMax = 64;

/** A subscription's deliveries in the order of recording. Records before `offset` are counted without parsing. */
export async function listDeliveries(
  store: BoundedRecords,
  subscriptionId: string,
  { limit, offset = 0, descending = false }: Omit<FindPage, 'after'>,
): Promise<DeliveryRecord[]> {
  const found: DeliveryRecord[] = [];
  let skip = offset;
  const lookup = { name: 'subscription', value: subscriptionId };
  const blocks = walk(store, blockKind, lookup, { descending });
  const requested = walk(store, requestedKind, lookup, { descending });
  for await (const record of merged(blocks, requested, descending)) {
    const length = record.kind === blockKind ? blockLengthOf(record.order) : 1;
    if (skip >= length) {
      skip -= length;
      continue;
    }
    store.walk.keep(record.value.length);
    const deliveries = deliveriesOf(record);
    found.push(...(descending ? deliveries.toReversed() : deliveries).slice(skip, skip + limit - found.length));
    skip = 0;
    if (found.length >= limit) break;
  }
  return found;
}

/** A delivery that the log made, by its id. null if the subscription has none with this id. */
export async function blockDelivery(
  store: BoundedRecords,
  subscriptionId: string,
  id: string,
): Promise<DeliveryRecord | null> {
  const timeMs = uuidV7Time(id);
  if (timeMs === null || !isWritable(timeMs + blockSpanMs)) return null;
  // The id has the time of the event. The last event of its block is at that time, or `blockSpanMs` later at most.
  const latest = isoTime(timeMs + blockSpanMs);
  const after = { order: isoTime(Math.max(0, timeMs - 1)), id };
  const lookup = { name: 'last_event', value: subscriptionId };
  for await (const record of walk(store, blockKind, lookup, { after })) {
    if (record.order > latest) return null;
    if (!record.value.includes(id)) continue;
    const delivery = readBlock(record)?.deliveries.find((one) => one.id === id);
    if (delivery !== undefined) return delivery;
  }
  return null;
}

/** All records of a look-up, page by page. Other work runs between the pages. */
async function* walk(
  store: BoundedRecords,
  kind: string,
  lookup: LookupName,
  from: Pick<FindPage, 'after' | 'descending'>,
): AsyncGenerator<FoundRecord> {
  let behind = from;
  for (let limit = recordsAtFirst; ; limit = Math.min(recordsAtOnceMax, 2 * limit)) {
    const found = await store.find(kind, lookup, { ...behind, limit, charsMax: pageCharsMax });
    yield* found;
    const last = found.at(-1);
    if (last === undefined || (found.length < limit && charsOf(found) < pageCharsMax)) return;
    behind = { ...from, after: last };
    await new Promise((resolve) => void setImmediate(resolve));
  }
}

/** In the order of the ledger. Empty if the record is damaged. */
function deliveriesOf(record: FoundRecord): readonly DeliveryRecord[] {
  if (record.kind === blockKind) return readBlock(record)?.deliveries ?? [];
  return decodeOrPassOver(record, () => [parseRequested(record)]) ?? [];
}

async function* merged(
  one: AsyncGenerator<FoundRecord>,
  other: AsyncGenerator<FoundRecord>,
  descending: boolean,
): AsyncGenerator<FoundRecord> {
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
