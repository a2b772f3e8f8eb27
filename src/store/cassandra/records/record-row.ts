import type { StoredRecord } from '../../record-store.ts';
import { keyText } from '../keys.ts';
import { preparedAtStart } from '../session/prepared-at-start.ts';
import { type CqlSession, type Statement, textOf } from '../session/session.ts';
import { formatPlaces, noPlaces, type Places, placesOf } from './record-places.ts';

/** How long the row of a removed record keeps a version. Longer than any write can be in flight. */
const removedTtlSeconds = 60 * 60;

const GET = preparedAtStart('SELECT version, value, places FROM record WHERE kind = ? AND id = ?');
const PUT = preparedAtStart(
  'UPDATE record SET version = ?, value = ?, places = ? WHERE kind = ? AND id = ? IF version = ?',
);
const REMOVE = `UPDATE record USING TTL ${removedTtlSeconds} SET version = ?, value = null, places = null WHERE kind = ? AND id = ? IF version = ?`;

/**
 * The row of a kind and id. A removal leaves a version without a value. Otherwise a write that began before the removal
 * and arrives late would find no row, and bring the record back.
 */
export interface RecordRow {
  /** null if there was never a record, or the version of a removal has expired. */
  readonly version: string | null;
  /** null if there is no record. */
  readonly shown: StoredRecord | null;
  readonly places: Places;
  /** Whether the places are damaged. Then `places` is empty. */
  readonly isMisplaced?: boolean;
}

export async function readRecord(session: CqlSession, kind: string, id: string): Promise<RecordRow> {
  const [row] = await session.read({ cql: GET, params: [keyText(kind), id] });
  const version = textOf(row, 'version');
  const value = textOf(row, 'value');
  if (version === null || value === null) return { version, shown: null, places: noPlaces };
  const places = placesOf(kind, id, textOf(row, 'places'));
  const shown = { kind, id, version, value };
  return places === null ? { version, shown, places: noPlaces, isMisplaced: true } : { version, shown, places };
}

/** Returns the conditional write of a record. `before` is the version that must be in the row, null for none. */
export function putStatement(
  kind: string,
  id: string,
  record: { readonly version: string; readonly value: string; readonly places: Places },
  before: string | null,
): Statement {
  const set = [record.version, record.value, formatPlaces(record.places)];
  return { cql: PUT, params: [...set, keyText(kind), id, before] };
}

/**
 * Returns the conditional removal of a record. `version` stays in the row, `before` is the version that must be in it.
 */
export function removeStatement(kind: string, id: string, version: string, before: string): Statement {
  return { cql: REMOVE, params: [version, keyText(kind), id, before] };
}
