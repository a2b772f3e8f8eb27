import type { Lookup, StoredRecord } from '../../record-store.ts';
import { recordIdMaxBytes } from '../../store-text.ts';
import { decodeOrPassOver } from '../../unreadable-record.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { bigintOf, type CqlSession, type Row, type Statement, textOf } from '../session/session.ts';

/**
 * The index rows of a record. Each has a token that no other put uses, and counts only while the record itself names
 * that token. So a put may write rows before the record and remove rows after it without affecting another writer's.
 */
export interface Places {
  readonly lookups: readonly PlacedLookup[];
  readonly expiry: PlacedExpiry | null;
}

interface PlacedLookup extends Lookup {
  readonly token: string;
}

interface PlacedExpiry {
  readonly at: number;
  readonly token: string;
}

export const noPlaces: Places = { lookups: [], expiry: null };

const ADD_LOOKUP = preparedAtStart(
  'INSERT INTO record_lookup (kind, name, value, line_order, id, put_token) VALUES (?, ?, ?, ?, ?, ?)',
);
const DROP_LOOKUP =
  'DELETE FROM record_lookup WHERE kind = ? AND name = ? AND value = ? AND line_order = ? AND id = ? AND put_token = ?';
const ADD_EXPIRY = preparedAtStart(
  'INSERT INTO record_expiry (minute, expires_at, kind, id, put_token) VALUES (?, ?, ?, ?, ?)',
);
export const DROP_EXPIRY =
  'DELETE FROM record_expiry WHERE minute = ? AND expires_at = ? AND kind = ? AND id = ? AND put_token = ?';
const ADD_MINUTE = preparedAtStart('INSERT INTO record_expiry_minute (part, minute) VALUES (0, ?)');

const minuteMs = 60_000;

export function isRecordId(id: string): boolean {
  return id !== '' && Buffer.byteLength(id) <= recordIdMaxBytes;
}

/** The index rows for a put. Rows that `before` has already keep their tokens, the others get `token`. */
export function placesFor(lookups: readonly Lookup[], expiresAt: number | null, before: Places, token: string): Places {
  const placed = lookups.map(({ name, value, order }) => {
    const kept = before.lookups.find((old) => old.name === name && old.value === value && old.order === order);
    return { name, value, order, token: kept?.token ?? token };
  });
  if (expiresAt === null) return { lookups: placed, expiry: null };
  const kept = before.expiry?.at === expiresAt ? before.expiry : null;
  return { lookups: placed, expiry: kept ?? { at: expiresAt, token } };
}

export function placesBeyond(these: Places, others: Places): Places {
  const tokens = new Set(others.lookups.map(lookupKey));
  const expiry = these.expiry !== null && these.expiry.token === others.expiry?.token ? null : these.expiry;
  return { lookups: these.lookups.filter((lookup) => !tokens.has(lookupKey(lookup))), expiry };
}

export async function addPlaces(session: CqlSession, kind: string, id: string, places: Places): Promise<void> {
  // The minute is listed before its row is written, because a sweep only reads minutes that are listed.
  if (places.expiry !== null) await session.write([{ cql: ADD_MINUTE, params: [minuteOf(places.expiry.at)] }]);
  await Promise.all(rowStatements(kind, id, places, ADD_LOOKUP, ADD_EXPIRY).map((row) => session.write([row])));
}

export async function dropPlaces(session: CqlSession, kind: string, id: string, places: Places): Promise<void> {
  await Promise.all(rowStatements(kind, id, places, DROP_LOOKUP, DROP_EXPIRY).map((row) => session.write([row])));
}

function rowStatements(kind: string, id: string, places: Places, lookupCql: string, expiryCql: string): Statement[] {
  const rows: Statement[] = places.lookups.map(({ name, value, order, token }) => ({
    cql: lookupCql,
    params: [keyText(kind), keyText(name), keyText(value), order, id, token],
  }));
  const { expiry } = places;
  if (expiry !== null) {
    const params = [minuteOf(expiry.at), BigInt(expiry.at), keyText(kind), id, expiry.token];
    rows.push({ cql: expiryCql, params });
  }
  return rows;
}

export function minuteOf(ms: number): bigint {
  return BigInt(Math.floor(ms / minuteMs));
}

type PlacesForm = readonly [
  lookups: readonly (readonly [name: string, value: string, order: string, token: string])[],
  expiry: readonly [at: number, token: string] | null,
];

export function formatPlaces({ lookups, expiry }: Places): string {
  const rows = lookups.map(({ name, value, order, token }) => [name, value, order, token]);
  return JSON.stringify([rows, expiry === null ? null : [expiry.at, expiry.token]]);
}

export function parsePlaces(text: string): Places {
  const [lookups, expiry] = JSON.parse(text) as PlacesForm;
  const isText = (value: unknown) => typeof value === 'string';
  const isWhole =
    lookups.every((lookup) => lookup.length === 4 && lookup.every(isText)) &&
    (expiry === null || (Number.isSafeInteger(expiry[0]) && isText(expiry[1])));
  if (!isWhole) throw new TypeError('These are no places of a record.');
  return {
    lookups: lookups.map(([name, value, order, token]) => ({ name, value, order, token })),
    expiry: expiry === null ? null : { at: expiry[0], token: expiry[1] },
  };
}

function lookupKey({ name, value, token }: PlacedLookup): string {
  return JSON.stringify([name, value, token]);
}

/** More than the clocks of Cassandra's nodes differ. */
const nodeClocksDifferMs = 1_000;
/** Longer than any write can be in flight. */
const removedTtlSeconds = 60 * 60;

const GET = preparedAtStart('SELECT version, value, places FROM record WHERE kind = ? AND id = ?');
const GET_TO_REPLACE = preparedAtStart(
  'SELECT version, value, places, writetime(version), writetime(value), writetime(places), toTimestamp(now()) AS now FROM record WHERE kind = ? AND id = ?',
);
const PUT = preparedAtStart(
  'UPDATE record SET version = ?, value = ?, places = ? WHERE kind = ? AND id = ? IF version = ?',
);
const REMOVE = `UPDATE record USING TTL ${removedTtlSeconds} SET version = ?, value = null, places = null WHERE kind = ? AND id = ? IF version = ?`;

/**
 * The row of a kind and id. A removal leaves a version without a value for an hour: a write that began before the
 * removal and arrives late would find no row otherwise, and bring the record back.
 */
export interface RecordRow {
  readonly version: string | null;
  readonly shown: StoredRecord | null;
  /** Empty if they are damaged: then the record can only be found by its id. */
  readonly places: Places;
  readonly hasDamagedPlaces: boolean;
}

export interface ReplacedRow extends RecordRow {
  readonly isAhead: boolean;
}

export async function readRecord(session: CqlSession, kind: string, id: string): Promise<RecordRow> {
  const [row] = await session.read({ cql: GET, params: [keyText(kind), id] });
  return recordRow(kind, id, row);
}

/**
 * As readRecord, for a write that follows. `isAhead`: a cell is dated ahead of Cassandra's clock, so that Cassandra may
 * acknowledge the write and not keep it.
 */
export async function readToReplace(session: CqlSession, kind: string, id: string): Promise<ReplacedRow> {
  const [row] = await session.read({ cql: GET_TO_REPLACE, params: [keyText(kind), id] });
  const aheadFrom = row?.now instanceof Date ? BigInt(row.now.getTime() + nodeClocksDifferMs) * 1_000n : null;
  const isAhead = ['version', 'value', 'places'].some((column) => {
    const written = bigintOf(row, `writetime(${column})`);
    return aheadFrom !== null && written !== null && written > aheadFrom;
  });
  return { ...recordRow(kind, id, row), isAhead };
}

function recordRow(kind: string, id: string, row: Row | undefined): RecordRow {
  const version = textOf(row, 'version');
  const value = textOf(row, 'value');
  if (version === null || value === null) return { version, shown: null, places: noPlaces, hasDamagedPlaces: false };
  const text = textOf(row, 'places');
  const places = text === null ? noPlaces : decodeOrPassOver({ kind, id, value: text }, parsePlaces);
  const shown = { kind, id, version, value };
  return { version, shown, places: places ?? noPlaces, hasDamagedPlaces: places === undefined };
}

/** The conditional write of a record. `before` is the version that must be in the row, null for none. */
export function putStatement(
  kind: string,
  id: string,
  record: { readonly version: string; readonly value: string; readonly places: Places },
  before: string | null,
): Statement {
  const set = [record.version, record.value, formatPlaces(record.places)];
  return { cql: PUT, params: [...set, keyText(kind), id, before] };
}

/** The conditional removal. `version` stays in the row, `before` is the version that must be in it. */
export function removeStatement(kind: string, id: string, version: string, before: string): Statement {
  return { cql: REMOVE, params: [version, keyText(kind), id, before] };
}
