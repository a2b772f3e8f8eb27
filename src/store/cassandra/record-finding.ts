import type { FindPage, FoundRecord } from '../record-store.ts';
import { keyText, readFrom } from './keys.ts';
import { readRecord } from './record-row.ts';
import { type CqlSession, type Row, type Statement, textOf } from './session.ts';

const COLUMNS = 'SELECT line_order, id, put_token FROM record_lookup WHERE kind = ? AND name = ? AND value = ?';
const UP = `${COLUMNS} LIMIT ?`;
const UP_BEHIND = `${COLUMNS} AND (line_order, id) > (?, ?) LIMIT ?`;
const DOWN = `${COLUMNS} ORDER BY line_order DESC LIMIT ?`;
const DOWN_BEHIND = `${COLUMNS} AND (line_order, id) < (?, ?) ORDER BY line_order DESC LIMIT ?`;

/** Index rows read at once beyond those that are wanted: some may be of writes under way or given up. */
const spareRows = 8;
const recordsAtOnceMax = 16;

interface IndexRow {
  readonly order: string;
  readonly id: string;
  readonly token: string;
}

/**
 * Records by a look-up, each checked against itself. An offset counts index rows: it may be off by those that writes
 * under way or given up have left, as an offset is anyway while others write.
 */
export async function findRecords(
  session: CqlSession,
  kind: string,
  lookup: { readonly name: string; readonly value: string },
  { limit, offset = 0, descending = false, after }: FindPage,
): Promise<FoundRecord[]> {
  const read = async (behind: FindPage['after'], max: number): Promise<IndexRow[]> => {
    const rows = await session.read(indexStatement(kind, lookup, descending, behind, max));
    return rows.map(indexRow);
  };
  const found: FoundRecord[] = [];
  let behind = after;
  if (offset > 0) {
    const last = (await read(behind, offset))[offset - 1];
    if (last === undefined) return [];
    behind = last;
  }
  while (found.length < limit) {
    const max = limit - found.length + spareRows;
    const rows = await read(behind, max);
    const checked = await inParts(rows, (row) => checkedRecord(session, kind, lookup, row));
    for (const record of checked) {
      const isNew = record !== null && found.every(({ id }) => id !== record.id);
      if (isNew && found.length < limit) found.push(record);
    }
    if (rows.length < max) break;
    behind = rows.at(-1);
  }
  return found;
}

/** The record, if it names this index row. */
async function checkedRecord(
  session: CqlSession,
  kind: string,
  { name, value }: { readonly name: string; readonly value: string },
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
  { name, value }: { readonly name: string; readonly value: string },
  descending: boolean,
  behind: FindPage['after'],
  max: number,
): Statement {
  const key = [keyText(kind), keyText(name), keyText(value)];
  if (behind === undefined) return { cql: descending ? DOWN : UP, params: [...key, max] };
  const from = [readFrom(behind.order), readFrom(behind.id)];
  return { cql: descending ? DOWN_BEHIND : UP_BEHIND, params: [...key, ...from, max] };
}

function indexRow(row: Row): IndexRow {
  return {
    order: textOf(row, 'line_order') ?? '',
    id: textOf(row, 'id') ?? '',
    token: textOf(row, 'put_token') ?? '',
  };
}

async function inParts<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += recordsAtOnceMax)
    results.push(...(await Promise.all(items.slice(at, at + recordsAtOnceMax).map(work))));
  return results;
}
