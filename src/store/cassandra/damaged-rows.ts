import type { DamagedRow } from '../store-inspection.ts';
import { parseAccessEvents } from './access/access-block.ts';
import { keyText } from './keys.ts';
import { seqsIn } from './log/scopes.ts';
import { parsePlaces } from './records/record-places.ts';
import { type CqlSession, numberOf, type Row, textOf } from './session/session.ts';

/** How to walk through a table and check its rows. */
interface TableCheck {
  readonly table: string;
  readonly partition: readonly string[];
  /** Clustering columns, each with a value that sorts before all of its values. */
  readonly clustering: readonly (readonly [column: string, before: string | number])[];
  /** The other columns. */
  readonly columns: readonly string[];
  /** Returns what is wrong with a row, as text. null if the row is sound. */
  wrong(session: CqlSession, row: Row): Promise<string | null> | string | null;
}

const numberFacts: ReadonlySet<string> = new Set([
  'schema-version',
  'bucket-events',
  'shard-count',
  'access-kept-from-hour',
]);

/** A value that sorts before every bucket number, fold version and hour. */
const beforeNumbers = -(2 ** 31);

/**
 * The tables whose rows are checked one by one. The rows of ledger_event and line are compared with the logs instead.
 */
export const tableChecks: readonly TableCheck[] = [
  {
    table: 'fact',
    partition: ['name'],
    clustering: [],
    columns: ['value'],
    wrong: (_session, row) => wrongFact(textOf(row, 'name') ?? '', textOf(row, 'value')),
  },
  {
    table: 'scope_bucket',
    partition: ['ledger_id', 'scope'],
    clustering: [['bucket', beforeNumbers]],
    columns: [],
    wrong: wrongScopeBucket,
  },
  {
    table: 'cell',
    partition: ['key'],
    clustering: [],
    columns: ['version', 'value'],
    wrong: (_session, row) => lacks(row, ['version', 'value']),
  },
  {
    table: 'command',
    partition: ['ledger_id', 'slot'],
    clustering: [['id', '']],
    columns: ['seq', 'fingerprint'],
    wrong: (_session, row) => lacks(row, ['seq', 'fingerprint']),
  },
  {
    table: 'snapshot',
    partition: ['owner'],
    clustering: [['fold_version', beforeNumbers]],
    columns: ['seq', 'hash', 'state', 'saved_at'],
    wrong: (_session, row) => lacks(row, ['seq', 'hash', 'state', 'saved_at']),
  },
  {
    table: 'record',
    partition: ['kind', 'id'],
    clustering: [],
    columns: ['version', 'value', 'places'],
    wrong: wrongRecord,
  },
  {
    table: 'access_block',
    partition: ['actor_id', 'hour'],
    clustering: [
      ['ledger_id', ''],
      ['first_id', ''],
    ],
    columns: ['count', 'events'],
    wrong: (_session, row) => wrongAccessBlock(row),
  },
];

/**
 * Returns the query for the partition keys of a table in the order of their tokens, with the token as `place`. For a
 * table without clustering columns the query returns whole rows.
 */
export function partitionsCql({ table, partition, clustering, columns }: TableCheck): string {
  const key = partition.join(', ');
  const asked = clustering.length > 0 ? `DISTINCT ${key}` : [...partition, ...columns].join(', ');
  return `SELECT ${asked}, token(${key}) AS place FROM ${table} WHERE token(${key}) > ? LIMIT ?`;
}

/** Yields the rows of a partition, read in pages. */
export async function* rowsOfPartition(
  session: CqlSession,
  { table, partition, clustering, columns }: TableCheck,
  key: Row,
  pageRows: number,
): AsyncGenerator<Row> {
  const names = clustering.map(([column]) => column);
  const cql =
    `SELECT ${[...partition, ...names, ...columns].join(', ')} FROM ${table} ` +
    `WHERE ${partition.map((column) => `${column} = ?`).join(' AND ')} ` +
    `AND (${names.join(', ')}) > (${names.map(() => '?').join(', ')}) LIMIT ?`;
  let behind: unknown[] = clustering.map(([, before]) => before);
  for (;;) {
    const rows = await session.read({ cql, params: [...partition.map((column) => key[column]), ...behind, pageRows] });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageRows) return;
    behind = names.map((name) => last[name]);
  }
}

/** Describes a damaged row for the report. */
export function damagedRow({ table, partition, clustering }: TableCheck, row: Row, detail: string): DamagedRow {
  const key = [...partition, ...clustering.map(([column]) => column)];
  const named = key.map((column) => `${column}=${String(row[column])}`).join(', ');
  return { table, key: named, ledgerId: null, seq: null, detail };
}

function lacks(row: Row, columns: readonly string[]): string | null {
  const missing = columns.filter((column) => row[column] === null || row[column] === undefined);
  return missing.length === 0 ? null : `the row lacks ${missing.join(' and ')}`;
}

function wrongFact(name: string, value: string | null): string | null {
  if (value === null || value === '') return `the fact ${name} has no value`;
  return numberFacts.has(name) && !/^\d{1,15}$/.test(value) ? `the fact ${name} is no number` : null;
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

/** Returns what is wrong with a record's row. A version without a value is sound: a removal leaves it for an hour. */
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
  let placed: ReturnType<typeof parsePlaces>;
  try {
    placed = parsePlaces(places);
  } catch {
    return 'places cannot be read, so no list names it';
  }
  for (const { name, value: of, order, token } of placed.lookups) {
    const params = [kind, keyText(name), keyText(of), order, id, token];
    const [found] = await session.read({ cql: LOOKUP, params });
    if (found === undefined && (await isUnchanged(session, kind, id, version)))
      return `record_lookup lacks its row ${name}, so that list does not name it`;
  }
  return null;
}

/** Whether the record still has this version. If not, it has other look-ups by now. */
async function isUnchanged(session: CqlSession, kind: string, id: string, version: string): Promise<boolean> {
  const [row] = await session.read({ cql: VERSION, params: [kind, id] });
  return row !== undefined && textOf(row, 'version') === version;
}

function wrongAccessBlock(row: Row): string | null {
  try {
    const events = parseAccessEvents(textOf(row, 'actor_id') ?? '', textOf(row, 'events') ?? '');
    if (events.length !== numberOf(row, 'count')) return 'count is not the number of its events';
    return events[0]?.id === textOf(row, 'first_id') ? null : 'first_id is not the id of its first event';
  } catch {
    return 'events cannot be read';
  }
}
