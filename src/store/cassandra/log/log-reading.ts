import { mapConcurrently } from '../../../runtime/collections/map-concurrently.ts';
import type { StoredEntry } from '../../ledger-store.ts';
import { charsOf, nextPart } from '../../pages.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { inParts, intMax, numberOf, type Row, textOf } from '../session/session.ts';
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

/**
 * Returns at most `limit` entries from seq `from` on, in order, from as many buckets as needed. Writes meanwhile leave
 * no gap between two entries. A row whose text is gone is returned with an empty row. A row in another bucket than its
 * seq belongs to is left out.
 */
export async function readLog(log: LedgerLog, from: number, limit: number, charsMax?: number): Promise<StoredEntry[]> {
  if (charsMax === undefined) return readEntries(log, from, limit);
  const entries: StoredEntry[] = [];
  for (let chars = 0; entries.length < limit && chars < charsMax; ) {
    const most = nextPart(limit - entries.length, entries.length, chars, charsMax);
    const part = await readEntries(log, (entries.at(-1)?.seq ?? from - 1) + 1, most);
    entries.push(...part);
    chars += charsOf(part);
    if (part.length < most) break;
  }
  return entries;
}

async function readEntries(log: LedgerLog, from: number, limit: number): Promise<StoredEntry[]> {
  const { bucketEvents } = log;
  let bucket = Math.floor(from / bucketEvents);
  if (limit <= 0 || bucket > intMax) return [];
  let entries = await readFirst(log, bucket, from, limit);
  while (entries.length < limit) {
    const { head } = await lookAt(log, bucket);
    if (head === null || bucketOfNext(head, bucketEvents) === bucket) break;
    // Another process may have filled the bucket since its entries were read, and gone on to the next bucket.
    const next = (entries.at(-1)?.seq ?? from - 1) + 1;
    if (next <= head.seq) entries = inOrder(entries, await readFirst(log, bucket, next, limit - entries.length));
    if (bucket === intMax) break;
    bucket++;
    if (entries.length < limit) entries = inOrder(entries, await readBucket(log, bucket, from, limit - entries.length));
  }
  return entries.slice(0, limit);
}

async function readFirst(log: LedgerLog, bucket: number, from: number, limit: number): Promise<StoredEntry[]> {
  const entries = await readBucket(log, bucket, from, limit);
  // The first seqs of a bucket may be in the bucket before, with the batch that filled that bucket.
  if (bucket === 0 || entries[0]?.seq === from) return entries;
  return inOrder(await readBucket(log, bucket - 1, from, limit), entries);
}

/** Joins a bucket's entries and the next one's. Those not before the first entry of `next` are misplaced. */
function inOrder(entries: readonly StoredEntry[], next: readonly StoredEntry[]): StoredEntry[] {
  const [first] = next;
  if (first === undefined) return [...entries];
  const end = entries.findIndex(({ seq }) => seq >= first.seq);
  return [...(end < 0 ? entries : entries.slice(0, end)), ...next];
}

/** The entries at these places, in the order of `places`, without those that are gone. */
export async function readPlaces(
  { session, ledgerId }: LedgerLog,
  places: readonly { readonly seq: number; readonly bucket: number }[],
): Promise<StoredEntry[]> {
  const asked: (readonly [bucket: number, seqs: bigint[]])[] = [];
  for (const [bucket, those] of Map.groupBy(places, (place) => place.bucket))
    for (const part of inParts(those, seqsMax)) asked.push([bucket, part.map(({ seq }) => BigInt(seq))]);
  const found = new Map<number, StoredEntry>();
  await mapConcurrently(asked, readsAtOnceMax, async ([bucket, seqs]) => {
    const rows = await session.read({ cql: AT, params: [keyText(ledgerId), bucket, seqs] });
    for (const entry of rows.flatMap(entryOf)) found.set(entry.seq, entry);
  });
  return places.flatMap(({ seq }) => found.get(seq) ?? []);
}

async function readBucket(
  { session, ledgerId, bucketEvents }: LedgerLog,
  bucket: number,
  from: number,
  limit: number,
): Promise<StoredEntry[]> {
  const { first, last } = seqsOfBucket(bucket, bucketEvents);
  const params = [keyText(ledgerId), bucket, BigInt(Math.max(from, first)), BigInt(last), limit];
  const rows = await session.read({ cql: FROM, params });
  return rows.flatMap(entryOf);
}

function entryOf(row: Row): StoredEntry[] {
  const seq = numberOf(row, 'seq');
  return seq === null ? [] : [{ seq, row: textOf(row, 'row') ?? '' }];
}
