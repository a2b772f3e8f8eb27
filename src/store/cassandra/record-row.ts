import type { StoredRecord } from '../record-store.ts';
import { keyText } from './keys.ts';
import { preparedAtStart } from './prepared-at-start.ts';
import { formatPlaces, noPlaces, type Places, placesOf } from './record-places.ts';
import { type CqlSession, type Statement, textOf } from './session.ts';

/** How long a removed record leaves its last version behind: longer than any write can be under way. */
const removedTtlSeconds = 60 * 60;

const GET = preparedAtStart('SELECT version, value, places FROM record WHERE kind = ? AND id = ?');
const PUT = preparedAtStart(
  'UPDATE record SET version = ?, value = ?, places = ? WHERE kind = ? AND id = ? IF version = ?',
);
const REMOVE = `UPDATE record USING TTL ${removedTtlSeconds} SET version = ?, value = null, places = null WHERE kind = ? AND id = ? IF version = ?`;

/**
 * What stands under a kind and id. A removal puts a version without a value there, so that a write that began before it
 * and arrives late does not find "nothing" and bring the record back.
 */
export interface RecordRow {
  /** null: nothing was ever there, or nothing is left of it. */
  readonly version: string | null;
  /** null: no record. */
  readonly shown: StoredRecord | null;
  readonly places: Places;
  /** Whether the places are damaged, so that none is known. */
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

/** Puts a record in the place of `before` (a version in the row, or null). */
export function putStatement(
  kind: string,
  id: string,
  record: { readonly version: string; readonly value: string; readonly places: Places },
  before: string | null,
): Statement {
  const set = [record.version, record.value, formatPlaces(record.places)];
  return { cql: PUT, params: [...set, keyText(kind), id, before] };
}

export function removeStatement(kind: string, id: string, version: string, before: string): Statement {
  return { cql: REMOVE, params: [version, keyText(kind), id, before] };
}
