import { dropPlaces, minuteOf, noPlaces } from './record-places.ts';
import { readRecord } from './record-row.ts';
import { type CqlSession, numberOf, textOf } from './session.ts';

const MINUTES = 'SELECT minute FROM record_expiry_minute WHERE part = 0 AND minute <= ? LIMIT ?';
const EXPIRED = 'SELECT expires_at, kind, id, put_token FROM record_expiry WHERE minute = ? AND expires_at < ? LIMIT ?';
const DROP_MINUTE = 'DELETE FROM record_expiry_minute WHERE part = 0 AND minute = ?';

const minutesMax = 1_000;
const removalsAtOnceMax = 8;
/** Minutes that ended longer ago than this are forgotten once they are empty: nothing that expires in them is still being put. */
const settledMs = 60 * 60 * 1000;
const minuteMs = 60_000;

interface ExpiryRow {
  readonly at: number;
  readonly kind: string;
  readonly id: string;
  readonly token: string;
}

/** Removes a record if this version still stands. */
export type Remove = (kind: string, id: string, version: string) => Promise<boolean>;

/**
 * Removes what expired before `now`, minute by minute, at most `limit` records. Rows of expiries that a record no longer
 * has are cleared away with it.
 */
export async function sweepRecords(session: CqlSession, now: number, limit: number, remove: Remove): Promise<number> {
  const minutes = await session.read({ cql: MINUTES, params: [minuteOf(now), minutesMax] });
  let removed = 0;
  for (const row of minutes) {
    const minute = numberOf(row, 'minute') ?? 0;
    const wanted = limit - removed;
    if (wanted <= 0) break;
    const expired = await session.read({ cql: EXPIRED, params: [BigInt(minute), BigInt(now), wanted] });
    const rows = expired.map((found) => ({
      at: numberOf(found, 'expires_at') ?? 0,
      kind: textOf(found, 'kind') ?? '',
      id: textOf(found, 'id') ?? '',
      token: textOf(found, 'put_token') ?? '',
    }));
    for (let at = 0; at < rows.length; at += removalsAtOnceMax) {
      const part = rows.slice(at, at + removalsAtOnceMax);
      const outcomes = await Promise.all(part.map((found) => sweepRow(session, found, remove)));
      removed += outcomes.filter((gone) => gone).length;
    }
    if (rows.length === 0 && (minute + 1) * minuteMs < now - settledMs)
      await session.write([{ cql: DROP_MINUTE, params: [BigInt(minute)] }]);
  }
  return removed;
}

async function sweepRow(session: CqlSession, { at, kind, id, token }: ExpiryRow, remove: Remove): Promise<boolean> {
  const { shown, places } = await readRecord(session, kind, id);
  if (shown !== null && places.expiry?.token === token) return remove(kind, id, shown.version);
  await dropPlaces(session, kind, id, { ...noPlaces, expiry: { at, token } });
  return false;
}
