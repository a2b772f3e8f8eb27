import type { StoredEntry } from '../../ledger-store.ts';
import { charsOf, nextPart } from '../../pages.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, numberOf, type Row, textOf } from '../session/session.ts';
import { bucketMax, bucketOfNext, lookAt, seqsOfBucket } from './log-end.ts';

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
export async function readLog(
  session: CqlSession,
  ledgerId: string,
  bucketEvents: number,
  from: number,
  limit: number,
  charsMax?: number,
): Promise<StoredEntry[]> {
  return charsMax === undefined
    ? readEntries(session, ledgerId, bucketEvents, from, limit)
    : readInParts(limit, charsMax, (last, most) =>
        readEntries(session, ledgerId, bucketEvents, last === undefined ? from : last.seq + 1, most),
      );
}

/** Reads entries in parts until `limit`, `charsMax` or the end of the log is reached. */
async function readInParts(
  limit: number,
  charsMax: number,
  read: (last: StoredEntry | undefined, limit: number) => Promise<StoredEntry[]>,
): Promise<StoredEntry[]> {
  const entries: StoredEntry[] = [];
  for (let chars = 0; entries.length < limit && chars < charsMax; ) {
    const most = nextPart(limit - entries.length, entries.length, chars, charsMax);
    const part = await read(entries.at(-1), most);
    entries.push(...part);
    chars += charsOf(part);
    if (part.length < most) break;
  }
  return entries;
}

async function readEntries(
  session: CqlSession,
  ledgerId: string,
  bucketEvents: number,
  from: number,
  limit: number,
): Promise<StoredEntry[]> {
  let bucket = Math.floor(from / bucketEvents);
  if (limit <= 0 || bucket > bucketMax) return [];
  const read = (at: number, first: number, max: number) => readBucket(session, ledgerId, at, bucketEvents, first, max);
  let entries = await readFirst(read, bucket, from, limit);
  while (entries.length < limit) {
    const { head } = await lookAt(session, ledgerId, bucket, bucketEvents);
    if (head === null || bucketOfNext(head, bucketEvents) === bucket) break;
    // Another process may have filled the bucket since its entries were read, and gone on to the next bucket.
    const next = (entries.at(-1)?.seq ?? from - 1) + 1;
    if (next <= head.seq) entries = inOrder(entries, await readFirst(read, bucket, next, limit - entries.length));
    bucket++;
    if (entries.length < limit) entries = inOrder(entries, await read(bucket, from, limit - entries.length));
  }
  return entries.slice(0, limit);
}

type ReadBucket = (bucket: number, from: number, limit: number) => Promise<StoredEntry[]>;

/** Returns entries from seq `from` on, from the bucket that `from` falls into and from the bucket before. */
async function readFirst(read: ReadBucket, bucket: number, from: number, limit: number): Promise<StoredEntry[]> {
  const entries = await read(bucket, from, limit);
  // The first seqs of a bucket may be in the bucket before, with the batch that filled that bucket.
  if (bucket === 0 || entries[0]?.seq === from) return entries;
  return inOrder(await read(bucket - 1, from, limit), entries);
}

/**
 * Joins the entries of a bucket and of the next one. Entries of the first that do not come before the first entry of
 * `next` are misplaced and left out.
 */
function inOrder(entries: readonly StoredEntry[], next: readonly StoredEntry[]): StoredEntry[] {
  const [first] = next;
  if (first === undefined) return [...entries];
  const end = entries.findIndex(({ seq }) => seq >= first.seq);
  return [...(end < 0 ? entries : entries.slice(0, end)), ...next];
}

/** Returns the entries at these places, in the order of `places`. Leaves out entries that are gone. */
export async function readPlaces(
  session: CqlSession,
  ledgerId: string,
  places: readonly { readonly seq: number; readonly bucket: number }[],
): Promise<StoredEntry[]> {
  const byBucket = new Map<number, number[]>();
  for (const { seq, bucket } of places) byBucket.set(bucket, [...(byBucket.get(bucket) ?? []), seq]);
  const asked: (readonly [bucket: number, seqs: number[]])[] = [];
  for (const [bucket, seqs] of byBucket)
    for (let at = 0; at < seqs.length; at += seqsMax) asked.push([bucket, seqs.slice(at, at + seqsMax)]);
  const found = new Map<number, StoredEntry>();
  let next = 0;
  const work = async () => {
    for (let part = asked[next++]; part !== undefined; part = asked[next++]) {
      const [bucket, seqs] = part;
      const rows = await session.read({ cql: AT, params: [keyText(ledgerId), bucket, seqs.map(BigInt)] });
      for (const entry of rows.flatMap(entryOf)) found.set(entry.seq, entry);
    }
  };
  await Promise.all(Array.from({ length: Math.min(asked.length, readsAtOnceMax) }, work));
  return places.flatMap(({ seq }) => found.get(seq) ?? []);
}

async function readBucket(
  session: CqlSession,
  ledgerId: string,
  bucket: number,
  bucketEvents: number,
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
