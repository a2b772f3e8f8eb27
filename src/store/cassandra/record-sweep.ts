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

/** What came of a row: its record was removed, it was of no record, its record is damaged and was passed over, or it may still be. */
type Outcome = 'removed' | 'cleared' | 'passed' | { readonly leftAt: number };

/** What came of a minute, or of a way through it. */
interface Pass {
  /** Whether nothing was left to look at; else the limit was reached. */
  readonly isAtEnd: boolean;
  /** Where it is gone on with. */
  readonly behind: ExpiryRow;
  /** Whether nothing was found from its beginning to its end. */
  readonly isEmpty: boolean;
  readonly looked: number;
  readonly removed: number;
  /** When the oldest that may be left expired, or earlier. Infinity: none is. */
  readonly oldestLeft: number;
}

/**
 * Removes what has expired, minute by minute. Rows of expiries that a record no longer has are cleared away with it.
 *
 * What was removed leaves deleted rows behind, so a minute is gone on with where the last sweep ended in it. What was put before that
 * place meanwhile, or could not be removed, is seen from the beginning alone: a sweep that went on with a minute and comes to its end
 * reads it once more from there, and only then says that nothing is left. A minute that is over and was found empty so is not looked into
 * again before it is forgotten, an hour later; what is put there in that hour had run out when it was put, and leaves with the minute.
 */
export class RecordSweep {
  readonly #session: CqlSession;
  readonly #remove: Remove;
  /** Minutes that are over and were found empty, and are not forgotten yet. */
  readonly #empty = new Set<number>();
  /** The minute that the last sweep ended in, which may hold more behind this row, or will while it runs. */
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
    let oldestLeft = Number.POSITIVE_INFINITY;
    for (const minute of minutes) {
      const isOver = (minute + 1) * minuteMs <= now;
      const isSettled = (minute + 1) * minuteMs < now - settledMs;
      if (this.#empty.has(minute) && !isSettled) continue;
      const pass = await this.#sweepMinute(minute, now, left);
      removed += pass.removed;
      left -= pass.looked;
      oldestLeft = Math.min(oldestLeft, pass.oldestLeft);
      if (!pass.isAtEnd || !isOver) this.#reached = { minute, behind: pass.behind };
      else if (this.#reached?.minute === minute) this.#reached = null;
      if (!pass.isAtEnd) return { removed, oldestLeft };
      if (!pass.isEmpty || !isOver) continue;
      this.#empty.add(minute);
      if (!isSettled) continue;
      await this.#session.write([{ cql: DROP_MINUTE, params: [BigInt(minute)] }]);
      this.#empty.delete(minute);
    }
    const last = minutes.at(-1);
    if (last !== undefined && minutes.length === minutesMax)
      oldestLeft = Math.min(oldestLeft, (last + 1) * minuteMs, now);
    return { removed, oldestLeft: Number.isFinite(oldestLeft) ? oldestLeft : null };
  }

  /** From where the last sweep ended in it to its end; then from its beginning, unless that is where this began. */
  async #sweepMinute(minute: number, now: number, limit: number): Promise<Pass> {
    const from = this.#reached?.minute === minute ? this.#reached.behind : beginning;
    const rest = await this.#pass(minute, now, from, limit);
    if (from === beginning) return rest;
    // What may stand before that place was not looked at.
    if (!rest.isAtEnd) return { ...rest, oldestLeft: minute * minuteMs };
    const whole = await this.#pass(minute, now, beginning, limit - rest.looked);
    return {
      ...whole,
      behind: whole.isAtEnd ? rest.behind : whole.behind,
      looked: rest.looked + whole.looked,
      removed: rest.removed + whole.removed,
    };
  }

  async #pass(minute: number, now: number, from: ExpiryRow, limit: number): Promise<Pass> {
    let behind = from;
    let looked = 0;
    let removed = 0;
    let oldestLeft = Number.POSITIVE_INFINITY;
    let isAtEnd = false;
    while (!isAtEnd && looked < limit) {
      const max = Math.min(limit - looked, rowsAtOnceMax);
      const rows = await this.#expired(minute, now, behind, max);
      for (const outcome of await this.#removeAll(rows)) {
        if (outcome === 'removed') removed += 1;
        else if (typeof outcome === 'object') oldestLeft = Math.min(oldestLeft, outcome.leftAt);
      }
      looked += rows.length;
      behind = rows.at(-1) ?? behind;
      isAtEnd = rows.length < max;
    }
    if (!isAtEnd) oldestLeft = Math.min(oldestLeft, Math.max(behind.at, minute * minuteMs));
    return { isAtEnd, behind, isEmpty: looked === 0, looked, removed, oldestLeft };
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

  async #removeAll(rows: readonly ExpiryRow[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (let at = 0; at < rows.length; at += removalsAtOnceMax) {
      const part = rows.slice(at, at + removalsAtOnceMax);
      outcomes.push(...(await Promise.all(part.map((row) => this.#removeOne(row)))));
    }
    return outcomes;
  }

  async #removeOne({ at, kind, id, token }: ExpiryRow): Promise<Outcome> {
    const { shown, places, isMisplaced = false } = await readRecord(this.#session, kind, id);
    if (isMisplaced) return 'passed';
    if (shown === null || places.expiry?.token !== token) {
      await dropPlaces(this.#session, kind, id, { ...noPlaces, expiry: { at, token } });
      return 'cleared';
    }
    // Where another version stands there by now, it may have kept the expiry.
    return (await this.#remove(kind, id, shown.version)) ? 'removed' : { leftAt: at };
  }
}
