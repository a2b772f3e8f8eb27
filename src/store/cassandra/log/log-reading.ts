import { mapConcurrently } from '../../../runtime/collections/map-concurrently.ts';
import type { StoredEntry } from '../../ledger-store.ts';
import { charsOf, nextPart } from '../../pages.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { inParts, intMax, numberOf, type Row, textOf } from '../session/session.ts';
import { TextRoom } from '../session/text-room.ts';
import type { LedgerLog } from './bucket.ts';
import { bucketOfNext, lookAt, seqsOfBucket } from './log-end.ts';

const FROM = preparedAtStart(
  "SELECT seq, row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq >= ? AND seq <= ? LIMIT ?",
);
const AT = preparedAtStart(
  "SELECT seq, row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = '' AND seq IN ?",
);
/** Seqs of one statement, and statements in flight. There may be many, because events of a scope may be far apart. */
const seqsMax = 64;
const readsAtOnceMax = 16;

export interface Place {
  readonly seq: number;
  readonly bucket: number;
}

/** Entries in order. `isCut`: there may be more of those that were asked for, because the characters were reached. */
interface LogPart {
  readonly entries: StoredEntry[];
  readonly isCut: boolean;
}

/**
 * Returns at most `limit` entries from seq `from` on, in order, from as many buckets as needed. Writes meanwhile leave
 * no gap between two entries. A row whose text is gone is returned with an empty row. A row in another bucket than its
 * seq belongs to is left out. Holds at most `charsMax` characters and one row.
 */
export async function readLog(
  log: LedgerLog,
  from: number,
  limit: number,
  charsMax = Number.POSITIVE_INFINITY,
): Promise<StoredEntry[]> {
  if (charsMax === Number.POSITIVE_INFINITY) return (await readEntries(log, from, limit, charsMax)).entries;
  const entries: StoredEntry[] = [];
  for (let chars = 0; entries.length < limit && chars < charsMax; ) {
    const most = nextPart(limit - entries.length, entries.length, chars, charsMax);
    const part = await readEntries(log, (entries.at(-1)?.seq ?? from - 1) + 1, most, charsMax - chars);
    entries.push(...part.entries);
    chars += charsOf(part.entries);
    if (!part.isCut && part.entries.length < most) break;
  }
  return entries;
}

async function readEntries(log: LedgerLog, from: number, limit: number, charsMax: number): Promise<LogPart> {
  const { bucketEvents } = log;
  let bucket = Math.floor(from / bucketEvents);
  if (limit <= 0 || bucket > intMax) return { entries: [], isCut: false };
  let { entries, isCut } = await readFirst(log, bucket, from, limit, charsMax);
  const append = async (read: typeof readFirst, of: number, start: number): Promise<void> => {
    const next = await read(log, of, start, limit - entries.length, charsMax - charsOf(entries));
    entries = inOrder(entries, next.entries);
    isCut = next.isCut;
  };
  while (!isCut && entries.length < limit) {
    const { head } = await lookAt(log, bucket);
    if (head === null || bucketOfNext(head, bucketEvents) === bucket) break;
    // Another process may have filled the bucket since its entries were read, and gone on to the next bucket.
    const next = (entries.at(-1)?.seq ?? from - 1) + 1;
    if (next <= head.seq) await append(readFirst, bucket, next);
    if (isCut || bucket === intMax) break;
    bucket++;
    if (entries.length < limit) await append(readBucket, bucket, from);
  }
  return { entries: entries.slice(0, limit), isCut };
}

async function readFirst(
  log: LedgerLog,
  bucket: number,
  from: number,
  limit: number,
  charsMax: number,
): Promise<LogPart> {
  let part = await readBucket(log, bucket, from, limit, charsMax);
  const first = part.entries[0]?.seq;
  if (bucket === 0 || first === from) return part;
  // The first seqs of a bucket may be in the bucket before, with the batch that filled that bucket. To make room for
  // them, entries that take up more than half of the page are read again.
  const isDropped = charsOf(part.entries) > charsMax / 2;
  if (isDropped) part = { entries: [], isCut: true };
  const before = await readBucket(log, bucket - 1, from, limit, charsMax - charsOf(part.entries));
  const inPlace = before.entries.filter(({ seq }) => first === undefined || seq < first);
  if (inPlace.length === 0) return isDropped ? readBucket(log, bucket, from, limit, charsMax) : part;
  const isWhole = !before.isCut || inPlace.length < before.entries.length;
  if (isDropped || !isWhole) return { entries: inPlace, isCut: true };
  return { entries: [...inPlace, ...part.entries], isCut: part.isCut };
}

/** Joins a bucket's entries and the next one's. Those not before the first entry of `next` are misplaced. */
function inOrder(entries: readonly StoredEntry[], next: readonly StoredEntry[]): StoredEntry[] {
  const [first] = next;
  if (first === undefined) return [...entries];
  const end = entries.findIndex(({ seq }) => seq >= first.seq);
  return [...(end < 0 ? entries : entries.slice(0, end)), ...next];
}

/**
 * The entries at the first `settled` of these places, in the order of `places`, without those that are gone. Settles at
 * least one place, and others as far as `charsMax` characters reach. Holds that many and one row.
 */
export async function readPlaces(
  log: LedgerLog,
  places: readonly Place[],
  charsMax = Number.POSITIVE_INFINITY,
): Promise<{ readonly entries: StoredEntry[]; readonly settled: number }> {
  const asked: (readonly [bucket: number, seqs: bigint[]])[] = [];
  for (const [bucket, those] of Map.groupBy(places, (place) => place.bucket))
    for (const part of inParts(those, seqsMax)) asked.push([bucket, part.map(({ seq }) => BigInt(seq))]);
  const { session, ledgerId } = log;
  const found = new Map<number, StoredEntry>();
  const room = new TextRoom('row', charsMax);
  await mapConcurrently(asked, readsAtOnceMax, async ([bucket, seqs]) => {
    if (room.isFull) return;
    const rows = await session.read({ cql: AT, params: [keyText(ledgerId), bucket, seqs] }, { room });
    for (const entry of rows.flatMap(entryOf)) found.set(entry.seq, entry);
  });
  // If the room is full, a place without an entry may have had no room.
  const end = room.isFull ? places.findIndex(({ seq }) => !found.has(seq)) : -1;
  if (end === 0 && places.length > 1) {
    found.clear();
    return readPlaces(log, places.slice(0, 1));
  }
  const settled = end <= 0 ? places.length : end;
  return { entries: places.slice(0, settled).flatMap(({ seq }) => found.get(seq) ?? []), settled };
}

async function readBucket(
  { session, ledgerId, bucketEvents }: LedgerLog,
  bucket: number,
  from: number,
  limit: number,
  charsMax: number,
): Promise<LogPart> {
  const { first, last } = seqsOfBucket(bucket, bucketEvents);
  const params = [keyText(ledgerId), bucket, BigInt(Math.max(from, first)), BigInt(last), limit];
  const room = new TextRoom('row', charsMax);
  const rows = await session.read({ cql: FROM, params }, { room });
  return { entries: rows.flatMap(entryOf), isCut: room.isFull };
}

function entryOf(row: Row): StoredEntry[] {
  const seq = numberOf(row, 'seq');
  return seq === null ? [] : [{ seq, row: textOf(row, 'row') ?? '' }];
}
