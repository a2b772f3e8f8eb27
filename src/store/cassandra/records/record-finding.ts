import type { FindPage, FoundRecord, LookupName } from '../../record-store.ts';
import { keyText, readFrom } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, type Row, type Statement, textOf } from '../session/session.ts';
import { readRecord } from './record-row.ts';

const COLUMNS = 'SELECT line_order, id, put_token FROM record_lookup WHERE kind = ? AND name = ? AND value = ?';
const UP = preparedAtStart(`${COLUMNS} LIMIT ?`);
const UP_BEHIND = `${COLUMNS} AND (line_order, id) > (?, ?) LIMIT ?`;
const UP_BEHIND_ROW = `${COLUMNS} AND (line_order, id, put_token) > (?, ?, ?) LIMIT ?`;
const DOWN = preparedAtStart(`${COLUMNS} ORDER BY line_order DESC LIMIT ?`);
const DOWN_BEHIND = `${COLUMNS} AND (line_order, id) < (?, ?) ORDER BY line_order DESC LIMIT ?`;
const DOWN_BEHIND_ROW = `${COLUMNS} AND (line_order, id, put_token) < (?, ?, ?) ORDER BY line_order DESC LIMIT ?`;

/** Index rows read beyond those that are wanted, because some may belong to writes in flight or writes that failed. */
const spareRows = 8;
const recordsAtOnceMax = 16;

interface IndexRow {
  readonly order: string;
  readonly id: string;
  readonly token: string;
}

/** Where reading goes on: after one index row, or after all rows of a record at one order. */
type Behind = IndexRow | NonNullable<FindPage['after']>;

/**
 * Finds records by a look-up. Each index row is checked against its record. A record may have several rows at one
 * order; rows of writes in flight and of failed writes do not count. An offset counts the rows of a record at one order
 * once. But it also counts records that were never written, and may be off by these, as any offset is while others
 * write.
 */
export async function findRecords(
  session: CqlSession,
  kind: string,
  lookup: LookupName,
  { limit, offset = 0, descending = false, after, charsMax = Number.POSITIVE_INFINITY }: FindPage,
): Promise<FoundRecord[]> {
  const read = async (behind: Behind | undefined, max: number): Promise<IndexRow[]> => {
    const rows = await session.read(indexStatement(kind, lookup, descending, behind, max));
    return rows.map(indexRow);
  };
  const found: FoundRecord[] = [];
  let behind: Behind | undefined = after;
  for (let left = offset; left > 0; ) {
    const rows = await read(behind, left);
    const last = rows.at(-1);
    if (last === undefined || rows.length < left) return [];
    left -= rows.filter((row, at) => !isSamePlace(row, rows[at - 1])).length;
    // Skips the other rows of the last record too.
    behind = { order: last.order, id: last.id };
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

function indexStatement(
  kind: string,
  { name, value }: LookupName,
  descending: boolean,
  behind: Behind | undefined,
  max: number,
): Statement {
  const key = [keyText(kind), keyText(name), keyText(value)];
  if (behind === undefined) return { cql: descending ? DOWN : UP, params: [...key, max] };
  const from = [readFrom(behind.order), readFrom(behind.id)];
  if (!('token' in behind)) return { cql: descending ? DOWN_BEHIND : UP_BEHIND, params: [...key, ...from, max] };
  return { cql: descending ? DOWN_BEHIND_ROW : UP_BEHIND_ROW, params: [...key, ...from, behind.token, max] };
}

function isSamePlace(row: IndexRow, other: IndexRow | undefined): boolean {
  return row.order === other?.order && row.id === other.id;
}

function indexRow(row: Row): IndexRow {
  return {
    order: textOf(row, 'line_order') ?? '',
    id: textOf(row, 'id') ?? '',
    token: textOf(row, 'put_token') ?? '',
  };
}
