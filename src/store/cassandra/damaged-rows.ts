import { LedgerError } from '../../domain/errors.ts';
import { accessTime } from '../access-log.ts';
import type { DamagedRow } from '../store-inspection.ts';
import { parseAccessEvents } from './access/access-block.ts';
import { accessHour, keyText } from './keys.ts';
import { seqsIn } from './log/scopes.ts';
import { minuteOf, type Places, parsePlaces } from './records/record-row.ts';
import { wrongFact } from './schema/fact-values.ts';
import { accessTtlSeconds } from './schema/schema.ts';
import { type CqlSession, numberOf, type Row, textOf } from './session/session.ts';
import { walkRows } from './token-walk.ts';
import { clockSkewMs, exactTime, timesOf, wrongTimes } from './writetimes.ts';

interface TableCheck {
  readonly table: string;
  readonly partition: readonly string[];
  /** Each with a value that sorts before all values of the column. */
  readonly clustering: readonly (readonly [column: string, before: string | number])[];
  readonly columns: readonly string[];
  /** Columns whose times are checked. */
  readonly timed: readonly string[];
  /** Returns what is wrong with a row, as text. null if the row is sound. */
  wrong(session: CqlSession, row: Row, nowMs: number): Promise<string | null> | string | null;
}

/** Sorts before every bucket number, fold version and hour. */
const beforeNumbers = -(2 ** 31);

/**
 * The tables whose rows are checked one by one. The rows of ledger_event and line are compared with the logs instead;
 * of line the times are checked here. In record_lookup, record_expiry, record_expiry_minute and access_hour a row too
 * many does no harm, and a missing one is found from the record or the block that needs it. They have no cell with a
 * time that can be read.
 */
export const tableChecks: readonly TableCheck[] = [
  check('fact', ['name'], [], ['value'], (_, row, nowMs) =>
    wrongFact(textOf(row, 'name') ?? '', textOf(row, 'value') ?? '', nowMs),
  ),
  check('scope_bucket', ['ledger_id', 'scope'], [['bucket', beforeNumbers]], [], wrongScopeBucket),
  check('cell', ['key'], [], ['version', 'value']),
  check('command', ['ledger_id', 'slot'], [['id', '']], ['seq', 'fingerprint']),
  { ...check('line', ['list'], [['line_order', '']], [], () => null), timed: ['value'] },
  check('snapshot', ['owner'], [['fold_version', beforeNumbers]], ['seq', 'hash', 'state', 'saved_at'], wrongSnapshot),
  check('record', ['kind', 'id'], [], ['version', 'value', 'places'], wrongRecord),
  check(
    'access_block',
    ['actor_id', 'hour'],
    [
      ['ledger_id', ''],
      ['first_id', ''],
    ],
    ['count', 'events'],
    wrongAccessBlock,
  ),
];

/** Without `wrong` a row is sound if it has all columns. */
function check(
  table: string,
  partition: TableCheck['partition'],
  clustering: TableCheck['clustering'],
  columns: readonly string[],
  wrong: TableCheck['wrong'] = (_, row) => lacking(row, columns),
): TableCheck {
  return { table, partition, clustering, columns, timed: columns, wrong };
}

function lacking(row: Row, columns: readonly string[]): string | null {
  const missing = columns.filter((column) => row[column] === null || row[column] === undefined);
  return missing.length === 0 ? null : `the row lacks ${missing.join(' and ')}`;
}

/** Yields what is wrong with a row of the table. An exception says that about the row too. */
export async function* wrongRows(
  session: CqlSession,
  check: TableCheck,
  row: Row,
  nowMs: number,
): AsyncGenerator<DamagedRow> {
  const detail = await (async () => check.wrong(session, row, nowMs))().catch((error: unknown) => {
    if (error instanceof LedgerError) throw error;
    return `the row cannot be checked: ${error instanceof Error ? error.message : String(error)}`;
  });
  if (detail !== null) yield rowFinding(check, row, 'damaged_row', detail);
  const misdated = wrongTimes(row, check.timed, nowMs, exactTime(check.table, row));
  if (misdated !== null) yield rowFinding(check, row, 'wrong_writetime', misdated);
}

/**
 * The query for the partition keys of a table in the order of their tokens, with the token as `place`. For a table
 * without clustering columns it returns whole rows.
 */
export function partitionsCql({ table, partition, clustering, columns, timed }: TableCheck): string {
  const key = partition.join(', ');
  const asked = clustering.length > 0 ? `DISTINCT ${key}` : columnsOf(partition, columns, timed);
  return `SELECT ${asked}, token(${key}) AS place FROM ${table} WHERE token(${key}) > ? LIMIT ?`;
}

export function rowsOfPartition(
  session: CqlSession,
  { table, partition, clustering, columns, timed }: TableCheck,
  key: Row,
): AsyncIterable<Row> {
  const names = clustering.map(([column]) => column);
  const cql =
    `SELECT ${columnsOf([...partition, ...names], columns, timed)} FROM ${table} ` +
    `WHERE ${partition.map((column) => `${column} = ?`).join(' AND ')} ` +
    `AND (${names.join(', ')}) > (${names.map(() => '?').join(', ')}) LIMIT ?`;
  const values = partition.map((column) => key[column]);
  const before = clustering.map(([, lowest]) => lowest);
  return walkRows(session, cql, values, names, before);
}

function columnsOf(key: readonly string[], columns: readonly string[], timed: readonly string[]): string {
  return [...key, ...columns, ...(timed.length > 0 ? [timesOf(timed)] : [])].join(', ');
}

function rowFinding(
  { table, partition, clustering }: TableCheck,
  row: Row,
  type: DamagedRow['type'],
  detail: string,
): DamagedRow {
  const key = [...partition, ...clustering.map(([column]) => column)];
  const named = key.map((column) => `${column}=${String(row[column])}`).join(', ');
  return { type, table, key: named, ledgerId: null, seq: null, detail };
}

/** Readers ignore a saved_at that is ahead. */
function wrongSnapshot(_: CqlSession, row: Row, nowMs: number): string | null {
  const isAhead = (numberOf(row, 'saved_at') ?? 0) > nowMs + clockSkewMs;
  return lacking(row, ['seq', 'hash', 'state', 'saved_at']) ?? (isAhead ? 'saved_at is ahead' : null);
}

async function wrongScopeBucket(session: CqlSession, row: Row): Promise<string | null> {
  const [ledgerId, scope, bucket] = [textOf(row, 'ledger_id'), textOf(row, 'scope'), numberOf(row, 'bucket')];
  if (ledgerId === null || scope === null || bucket === null) return 'the row lacks a part of its key';
  const rows = await session.read({ cql: SEQS, params: [ledgerId, bucket, scope] });
  return rows.some((one) => seqsIn(textOf(one, 'row') ?? '').length > 0)
    ? null
    : `no event of scope ${scope} stands in bucket ${bucket}`;
}

const SEQS = 'SELECT row FROM ledger_event WHERE ledger_id = ? AND bucket = ? AND scope = ?';
const VERSION = 'SELECT version FROM record WHERE kind = ? AND id = ?';
const LOOKUP =
  'SELECT id FROM record_lookup WHERE kind = ? AND name = ? AND value = ? AND line_order = ? AND id = ? AND put_token = ?';
const EXPIRY =
  'SELECT id FROM record_expiry WHERE minute = ? AND expires_at = ? AND kind = ? AND id = ? AND put_token = ?';
const MINUTE = 'SELECT minute FROM record_expiry_minute WHERE part = 0 AND minute = ?';
const HOUR = 'SELECT hour FROM access_hour WHERE actor_id = ? AND hour = ?';

/** The row of an hour expires up to an hour before its last blocks: blocks of about that age are not checked for it. */
const hourCheckedMs = (accessTtlSeconds - 24 * 60 * 60) * 1_000;

/** A version without a value is sound: a removal leaves it for an hour. */
async function wrongRecord(session: CqlSession, row: Row): Promise<string | null> {
  const [kind, id] = [textOf(row, 'kind') ?? '', textOf(row, 'id') ?? ''];
  const [version, value, places] = [textOf(row, 'version'), textOf(row, 'value'), textOf(row, 'places')];
  if (version === null) return value === null && places === null ? null : 'the row lacks version, so nothing reads it';
  if (value === null) return places === null ? null : 'the row lacks value, so nothing reads it';
  if (places === null) return 'the row lacks places, so no list names it';
  try {
    JSON.parse(value);
  } catch {
    return 'value is no JSON';
  }
  let placed: Places;
  try {
    placed = parsePlaces(places);
  } catch {
    return 'places cannot be read, so no list names it';
  }
  const missing = await missingPlace(session, kind, id, placed);
  if (missing === null) return null;
  // A record that was replaced meanwhile has other index rows.
  const [now] = await session.read({ cql: VERSION, params: [kind, id] });
  return textOf(now, 'version') === version ? missing : null;
}

/** Which index row of a record is missing, as text. null if none is. `kind` is the key as it is stored. */
async function missingPlace(session: CqlSession, kind: string, id: string, places: Places): Promise<string | null> {
  const isThere = async (cql: string, ...params: unknown[]) => (await session.read({ cql, params })).length > 0;
  for (const { name, value, order, token } of places.lookups)
    if (!(await isThere(LOOKUP, kind, keyText(name), keyText(value), order, id, token)))
      return `record_lookup lacks its row ${name}, so that list does not name it`;
  if (places.expiry === null) return null;
  const { at, token } = places.expiry;
  const minute = minuteOf(at);
  if (!(await isThere(EXPIRY, minute, BigInt(at), kind, id, token)))
    return 'record_expiry lacks its row, so that it is never removed';
  const isListed = await isThere(MINUTE, minute);
  return isListed ? null : `record_expiry_minute lacks minute ${minute}, so that it is never removed`;
}

async function wrongAccessBlock(session: CqlSession, row: Row, nowMs: number): Promise<string | null> {
  const [actorId, hour] = [textOf(row, 'actor_id') ?? '', numberOf(row, 'hour') ?? 0];
  try {
    const events = parseAccessEvents(actorId, textOf(row, 'events') ?? '');
    if (events.length !== numberOf(row, 'count')) return 'count is not the number of its events';
    if (events[0]?.id !== textOf(row, 'first_id')) return 'first_id is not the id of its first event';
    if (events.some(({ id }) => accessHour(accessTime(id)) !== hour)) return `an event is not of hour ${hour}`;
  } catch {
    return 'events cannot be read';
  }
  if (hour < accessHour(nowMs - hourCheckedMs)) return null;
  const listed = await session.read({ cql: HOUR, params: [actorId, hour] });
  return listed.length > 0 ? null : `access_hour lacks hour ${hour}, so that nobody reads the block`;
}
