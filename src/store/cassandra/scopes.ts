import type { ScopeEntries, ScopePage, StoredEntry } from '../ledger-store.ts';
import { charsOf, nextPart } from '../page-size.ts';
import { keyText } from './keys.ts';
import { readPlaces } from './log-reading.ts';
import { preparedAtStart } from './prepared-at-start.ts';
import { type CqlSession, numberOf, textOf } from './session.ts';

const BUCKETS = 'SELECT bucket FROM scope_bucket WHERE ledger_id = ? AND scope = ?';
const ASCENDING = preparedAtStart(`${BUCKETS} AND bucket >= ? LIMIT ?`);
const DESCENDING = preparedAtStart(`${BUCKETS} AND bucket <= ? ORDER BY bucket DESC LIMIT ?`);
const SEQS = preparedAtStart('SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = ?');
const LAST_BUCKET = 2 ** 31 - 1;
/** Buckets looked into at once; a scope may have one event in each. */
const bucketsAtOnce = 16;

interface Place {
  readonly seq: number;
  readonly bucket: number;
}

/**
 * Entries under a scope. A page costs its own length, whatever the length of the ledger: only buckets are looked into in
 * which the scope has events.
 */
export async function readScopePage(
  session: CqlSession,
  ledgerId: string,
  scope: string,
  bucketEvents: number,
  page: ScopePage,
): Promise<ScopeEntries> {
  const places = await listedPlaces(session, ledgerId, scope, bucketEvents, page);
  const { charsMax } = page;
  const entries: StoredEntry[] = [];
  let read = 0;
  for (let chars = 0; read < places.length && chars < (charsMax ?? Number.POSITIVE_INFINITY); ) {
    const left = places.length - read;
    const atOnce = charsMax === undefined ? left : nextPart(left, read, chars, charsMax);
    const part = await readPlaces(session, ledgerId, places.slice(read, read + atOnce));
    entries.push(...part);
    chars += charsOf(part);
    read += atOnce;
  }
  const found = new Set(entries.map(({ seq }) => seq));
  const seqs = places.slice(0, read).map(({ seq }) => seq);
  return { entries, missing: seqs.filter((seq) => !found.has(seq)) };
}

/** Just the seqs. */
export async function readScopeSeqs(
  session: CqlSession,
  ledgerId: string,
  scope: string,
  bucketEvents: number,
  page: ScopePage,
): Promise<number[]> {
  return (await listedPlaces(session, ledgerId, scope, bucketEvents, page)).map(({ seq }) => seq);
}

async function listedPlaces(
  session: CqlSession,
  ledgerId: string,
  scope: string,
  bucketEvents: number,
  { from, limit, descending = false }: ScopePage,
): Promise<Place[]> {
  const key = [keyText(ledgerId), keyText(scope)];
  const places: Place[] = [];
  // Events may lie in the bucket before the one that their seq falls into.
  const ends = descending ? LAST_BUCKET : 0;
  const near = from === undefined ? ends : Math.floor(from / bucketEvents) - (descending ? 0 : 1);
  for (let start = Math.min(near, LAST_BUCKET); places.length < limit; ) {
    const rows = await session.read({
      cql: descending ? DESCENDING : ASCENDING,
      params: [...key, start, bucketsAtOnce + 1],
    });
    const listed = rows.map((row) => numberOf(row, 'bucket') ?? 0);
    // Where more are listed, those that are looked into are full: nothing comes to them before the next ones are listed.
    const found = await Promise.all(
      listed.slice(0, bucketsAtOnce).map((bucket) => placesIn(session, ledgerId, scope, bucket)),
    );
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

/** The seqs in a row of a scope, which lists events of one batch. What is no seq is left out. */
export function seqsIn(row: string): number[] {
  return row.split(' ').flatMap((text) => (isSeq(text) ? [Number(text)] : []));
}

/** Whether it is a seq, as a row of a scope lists it. */
export function isSeq(text: string): boolean {
  return /^(0|[1-9]\d{0,14})$/.test(text);
}

/** The events of a scope in a bucket, ascending: a row for each batch that has some. */
export async function placesIn(session: CqlSession, ledgerId: string, scope: string, bucket: number): Promise<Place[]> {
  const rows = await session.read({ cql: SEQS, params: [keyText(ledgerId), bucket, keyText(scope)] });
  const seqs = new Set(rows.flatMap((row) => seqsIn(textOf(row, 'row') ?? '')));
  return [...seqs].sort((one, other) => one - other).map((seq) => ({ seq, bucket }));
}
