import type { FindPage, FoundRecord, LookupName } from '../../record-store.ts';
import { keyText, readFrom } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, type Row, textOf } from '../session/session.ts';
import { readRecord } from './record-row.ts';

const COLUMNS = 'SELECT line_order, id, put_token FROM record_lookup WHERE kind = ? AND name = ? AND value = ?';
const UP = preparedAtStart(`${COLUMNS} LIMIT ?`);
const UP_BEHIND = `${COLUMNS} AND (line_order, id, put_token) > (?, ?, ?) LIMIT ?`;
const BEFORE = 'AND (line_order) < (?)';
const UP_BEFORE = `${COLUMNS} ${BEFORE} LIMIT ?`;
const UP_BETWEEN = `${COLUMNS} AND (line_order, id, put_token) > (?, ?, ?) ${BEFORE} LIMIT ?`;
const DOWN = preparedAtStart(`${COLUMNS} ORDER BY line_order DESC LIMIT ?`);
const DOWN_BEHIND = `${COLUMNS} AND (line_order, id, put_token) < (?, ?, ?) ORDER BY line_order DESC LIMIT ?`;

/** Index rows read beyond those that are wanted, because some may belong to writes in flight or writes that failed. */
const spareRows = 8;
const recordsAtOnceMax = 16;
/** Sorts after every token. */
const lastToken = '\u{10FFFF}';

interface IndexRow {
  readonly order: string;
  readonly id: string;
  readonly token: string;
}

/**
 * Finds records by a look-up. Each index row is checked against its record: a record may have several rows at one
 * order, and rows of writes in flight and of failed writes do not count. An offset counts the rows of a record at one
 * order once. It also counts records that were never written, and may be off by these.
 */
export async function findRecords(
  session: CqlSession,
  kind: string,
  lookup: LookupName,
  { limit, offset = 0, descending = false, after, before, charsMax = Number.POSITIVE_INFINITY }: FindPage,
): Promise<FoundRecord[]> {
  const key = [keyText(kind), keyText(lookup.name), keyText(lookup.value)];
  const read = async (behind: IndexRow | undefined, max: number): Promise<IndexRow[]> => {
    const from = behind === undefined ? [] : [readFrom(behind.order), readFrom(behind.id), behind.token];
    const until = before === undefined ? [] : [readFrom(before)];
    const [whole, rest] = descending
      ? [DOWN, DOWN_BEHIND]
      : before === undefined
        ? [UP, UP_BEHIND]
        : [UP_BEFORE, UP_BETWEEN];
    const cql = behind === undefined ? whole : rest;
    return indexRows(await session.read({ cql, params: [...key, ...from, ...until, max] }));
  };
  const behindRecord = ({ order, id }: Omit<IndexRow, 'token'>) => {
    return { order, id, token: descending ? '' : lastToken };
  };
  const found: FoundRecord[] = [];
  let behind = after === undefined ? undefined : behindRecord(after);
  for (let left = offset; left > 0; ) {
    const rows = await read(behind, left);
    const last = rows.at(-1);
    if (last === undefined || rows.length < left) return [];
    left -= rows.filter((row, at) => !isSamePlace(row, rows[at - 1])).length;
    behind = behindRecord(last);
  }
  let chars = 0;
  while (found.length < limit && chars < charsMax) {
    const max = limit - found.length + spareRows;
    const rows = await read(behind, max);
    for (let at = 0; at < rows.length && chars < charsMax; at += recordsAtOnceMax) {
      const part = rows.slice(at, at + recordsAtOnceMax);
      for (const record of await Promise.all(part.map((row) => checkedRecord(session, kind, lookup, row)))) {
        if (record === null || found.length >= limit || found.some(({ id }) => id === record.id)) continue;
        found.push(record);
        chars += record.value.length;
      }
    }
    if (rows.length < max) break;
    behind = rows.at(-1);
  }
  return found;
}

async function checkedRecord(
  session: CqlSession,
  kind: string,
  { name, value }: LookupName,
  { order, id, token }: IndexRow,
): Promise<FoundRecord | null> {
  const { shown, places } = await readRecord(session, kind, id);
  const counts = places.lookups.some(
    (place) => place.name === name && place.value === value && place.order === order && place.token === token,
  );
  return shown !== null && counts ? { ...shown, order } : null;
}

function isSamePlace(row: IndexRow, other: IndexRow | undefined): boolean {
  return row.order === other?.order && row.id === other.id;
}

function indexRows(rows: readonly Row[]): IndexRow[] {
  return rows.map((row) => ({
    order: textOf(row, 'line_order') ?? '',
    id: textOf(row, 'id') ?? '',
    token: textOf(row, 'put_token') ?? '',
  }));
}
