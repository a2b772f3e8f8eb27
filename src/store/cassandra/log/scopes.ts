import type { ScopeEntries, ScopePage, StoredEntry } from '../../ledger-store.ts';
import { charsOf, nextPart } from '../../pages.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { intMax, numberOf, textOf } from '../session/session.ts';
import type { LedgerLog } from './bucket.ts';
import { type Place, readPlaces } from './log-reading.ts';

const BUCKETS = 'SELECT bucket FROM scope_bucket WHERE ledger_id = ? AND scope = ?';
const ASCENDING = preparedAtStart(`${BUCKETS} AND bucket >= ? LIMIT ?`);
const DESCENDING = preparedAtStart(`${BUCKETS} AND bucket >= 0 AND bucket <= ? ORDER BY bucket DESC LIMIT ?`);
const SEQS = preparedAtStart('SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = ?');
const bucketsAtOnce = 16;

/** As LedgerStore.readScope. Only buckets with events of the scope are read. */
export async function readScopePage(log: LedgerLog, scope: string, page: ScopePage): Promise<ScopeEntries> {
  const places = await listedPlaces(log, scope, page);
  const { charsMax = Number.POSITIVE_INFINITY } = page;
  const entries: StoredEntry[] = [];
  let read = 0;
  for (let chars = 0; read < places.length && chars < charsMax; ) {
    const left = places.length - read;
    const atOnce = page.charsMax === undefined ? left : nextPart(left, read, chars, charsMax);
    const part = await readPlaces(log, places.slice(read, read + atOnce), charsMax - chars);
    entries.push(...part.entries);
    chars += charsOf(part.entries);
    read += part.settled;
  }
  const found = new Set(entries.map(({ seq }) => seq));
  const seqs = places.slice(0, read).map(({ seq }) => seq);
  return { entries, missing: seqs.filter((seq) => !found.has(seq)) };
}

export async function readScopeSeqs(log: LedgerLog, scope: string, page: ScopePage): Promise<number[]> {
  return (await listedPlaces(log, scope, page)).map(({ seq }) => seq);
}

async function listedPlaces(
  log: LedgerLog,
  scope: string,
  { from, limit, descending = false }: ScopePage,
): Promise<Place[]> {
  const { session, ledgerId, bucketEvents } = log;
  const key = [keyText(ledgerId), keyText(scope)];
  const places: Place[] = [];
  // The first seqs of a bucket may be in the bucket before, with the batch that filled that bucket.
  const ends = descending ? intMax : 0;
  const near = from === undefined ? ends : Math.floor(from / bucketEvents) - (descending ? 0 : 1);
  for (let start = Math.min(near, intMax); places.length < limit; ) {
    const rows = await session.read({
      cql: descending ? DESCENDING : ASCENDING,
      params: [...key, start, bucketsAtOnce + 1],
    });
    const listed = rows.map((row) => numberOf(row, 'bucket') ?? 0);
    // If further buckets are listed, the ones read now are full, so that no event is missed between two parts.
    const found = await Promise.all(listed.slice(0, bucketsAtOnce).map((bucket) => placesIn(log, scope, bucket)));
    for (const inBucket of found) {
      const inOrder = descending ? inBucket.reverse() : inBucket;
      for (const place of inOrder) {
        const isAsked = from === undefined || (descending ? place.seq <= from : place.seq >= from);
        if (isAsked && places.length < limit) places.push(place);
      }
    }
    const next = listed[bucketsAtOnce];
    if (next === undefined) break;
    start = next;
  }
  return places;
}

/** The seqs in a row of a scope, which lists events of one batch. Leaves out what is not a seq. */
export function seqsIn(row: string): number[] {
  return row.split(' ').flatMap((text) => (isSeq(text) ? [Number(text)] : []));
}

export function isSeq(text: string): boolean {
  return /^(0|[1-9]\d{0,14})$/.test(text);
}

/** The events of a scope in a bucket, ascending. There is one row for each batch with events of the scope. */
export async function placesIn({ session, ledgerId }: LedgerLog, scope: string, bucket: number): Promise<Place[]> {
  const rows = await session.read({ cql: SEQS, params: [keyText(ledgerId), bucket, keyText(scope)] });
  const seqs = new Set(rows.flatMap((row) => seqsIn(textOf(row, 'row') ?? '')));
  return [...seqs].sort((one, other) => one - other).map((seq) => ({ seq, bucket }));
}
