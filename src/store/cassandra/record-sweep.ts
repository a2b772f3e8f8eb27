import type { Swept } from '../record-store.ts';
import { dropPlaces, minuteOf, noPlaces } from './record-places.ts';
import { readRecord } from './record-row.ts';
import { type CqlSession, numberOf, textOf } from './session.ts';

const MINUTES = 'SELECT minute FROM record_expiry_minute WHERE part = 0 AND minute <= ? LIMIT ?';
const EXPIRED =
  'SELECT expires_at, kind, id, put_token FROM record_expiry WHERE minute = ? AND (expires_at) < (?) AND (expires_at, kind, id, put_token) > (?, ?, ?, ?) LIMIT ?';
const DROP_MINUTE = 'DELETE FROM record_expiry_minute WHERE part = 0 AND minute = ?';

const minutesMax = 1_000;
const rowsAtOnceMax = 64;
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

/** Before every row of a minute. */
const beginning: ExpiryRow = { at: -1, kind: '', id: '', token: '' };

/** Removes a record if this version still stands. */
export type Remove = (kind: string, id: string, version: string) => Promise<boolean>;

/**
 * Removes what has expired, minute by minute. Rows of expiries that a record no longer has are cleared away with it.
 *
 * What was removed leaves deleted rows behind: a minute is gone on with where the last sweep ended in it, then read once more from its
 * beginning for what was put there meanwhile, and one that was found empty then is not looked into again before it is forgotten.
 */
export class RecordSweep {
  readonly #session: CqlSession;
  readonly #remove: Remove;
  /** Minutes that are over and were found empty, and are not forgotten yet. */
  readonly #empty = new Set<number>();
  /** The minute that the last sweep ended in, which may hold more behind this row. */
  #reached: { readonly minute: number; readonly behind: ExpiryRow } | null = null;

  constructor(session: CqlSession, remove: Remove) {
    this.#session = session;
    this.#remove = remove;
  }

  /** Looks at no more than `limit` rows. */
  async sweep(now: number, limit: number): Promise<Swept> {
    const found = await this.#session.read({ cql: MINUTES, params: [minuteOf(now), minutesMax] });
    const minutes = found.map((row) => numberOf(row, 'minute') ?? 0);
    let removed = 0;
    let left = limit;
    for (const minute of minutes) {
      const isOver = (minute + 1) * minuteMs <= now;
      const isSettled = (minute + 1) * minuteMs < now - settledMs;
      if (this.#empty.has(minute) && !isSettled) continue;
      let behind = this.#reached?.minute === minute ? this.#reached.behind : beginning;
      for (;;) {
        if (left <= 0) {
          this.#reached = { minute, behind };
          return { removed, oldestLeft: Math.max(behind.at, minute * minuteMs) };
        }
        const max = Math.min(left, rowsAtOnceMax);
        const rows = await this.#expired(minute, now, behind, max);
        removed += await this.#removeAll(rows);
        left -= rows.length;
        behind = rows.at(-1) ?? behind;
        if (rows.length < max) break;
      }
      if (this.#reached?.minute === minute) this.#reached = null;
      // Some were found, by this sweep or by those that it went on from.
      if (behind !== beginning || !isOver) continue;
      this.#empty.add(minute);
      if (!isSettled) continue;
      await this.#session.write([{ cql: DROP_MINUTE, params: [BigInt(minute)] }]);
      this.#empty.delete(minute);
    }
    const last = minutes.at(-1);
    const mayBeMore = last !== undefined && minutes.length === minutesMax;
    return { removed, oldestLeft: mayBeMore ? Math.min((last + 1) * minuteMs, now) : null };
  }

  async #expired(minute: number, now: number, behind: ExpiryRow, max: number): Promise<ExpiryRow[]> {
    const from = [BigInt(behind.at), behind.kind, behind.id, behind.token];
    const rows = await this.#session.read({ cql: EXPIRED, params: [BigInt(minute), BigInt(now), ...from, max] });
    return rows.map((row) => ({
      at: numberOf(row, 'expires_at') ?? 0,
      kind: textOf(row, 'kind') ?? '',
      id: textOf(row, 'id') ?? '',
      token: textOf(row, 'put_token') ?? '',
    }));
  }

  async #removeAll(rows: readonly ExpiryRow[]): Promise<number> {
    let removed = 0;
    for (let at = 0; at < rows.length; at += removalsAtOnceMax) {
      const part = rows.slice(at, at + removalsAtOnceMax);
      const outcomes = await Promise.all(part.map((row) => this.#removeOne(row)));
      removed += outcomes.filter((gone) => gone).length;
    }
    return removed;
  }

  async #removeOne({ at, kind, id, token }: ExpiryRow): Promise<boolean> {
    const { shown, places } = await readRecord(this.#session, kind, id);
    if (shown !== null && places.expiry?.token === token) return this.#remove(kind, id, shown.version);
    await dropPlaces(this.#session, kind, id, { ...noPlaces, expiry: { at, token } });
    return false;
  }
}
