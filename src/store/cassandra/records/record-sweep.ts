import type { Swept } from '../../record-store.ts';
import { type CqlSession, inParts, numberOf, textOf } from '../session/session.ts';
import { dropPlaces, minuteOf, noPlaces, readRecord } from './record-row.ts';

const MINUTES = 'SELECT minute FROM record_expiry_minute WHERE part = 0 AND minute <= ? LIMIT ?';
const EXPIRED =
  'SELECT expires_at, kind, id, put_token FROM record_expiry WHERE minute = ? AND (expires_at) < (?) AND (expires_at, kind, id, put_token) > (?, ?, ?, ?) LIMIT ?';
const DROP_MINUTE = 'DELETE FROM record_expiry_minute WHERE part = 0 AND minute = ?';

const minutesMax = 1_000;
const rowsAtOnceMax = 64;
const removalsAtOnceMax = 8;
/** An empty minute is unlisted this long after its end: no put that expires in it is in flight then. */
const settledMs = 60 * 60 * 1000;
const minuteMs = 60_000;

interface ExpiryRow {
  readonly at: number;
  readonly kind: string;
  readonly id: string;
  readonly token: string;
}

const beginning: ExpiryRow = { at: -1, kind: '', id: '', token: '' };

type Remove = (kind: string, id: string, version: string) => Promise<boolean>;

/**
 * Of an expiry row. `removed`: with its record. `cleared`: it belonged to no record. `passed`: its record is damaged.
 * `leftAt`: the record may still be there, and expired then.
 */
type Outcome = 'removed' | 'cleared' | 'passed' | { readonly leftAt: number };

interface Pass {
  /** Whether the pass came to the end of the minute. If not, the limit was reached. */
  readonly isAtEnd: boolean;
  readonly behind: ExpiryRow;
  readonly isEmpty: boolean;
  readonly looked: number;
  readonly removed: number;
  /** As in Swept. Infinity if none is left. */
  readonly oldestLeft: number;
}

/**
 * Removes expired records, minute by minute, and expiry rows that no record refers to.
 *
 * Removed rows leave tombstones, which make reads slow. So a sweep goes on in a minute where the last sweep ended. It
 * does not see rows before that place that were put meanwhile or could not be removed. So at the end of the minute it
 * reads the minute once more from the beginning, and only then reports that nothing is left.
 *
 * A minute that has ended and was found empty is not read again until an hour after its end. Then it is read once more,
 * and unlisted if it is still empty. A record put into the minute in between had expired before the put.
 */
export class RecordSweep {
  readonly #session: CqlSession;
  readonly #remove: Remove;
  /** Minutes that have ended and were found empty, and are still listed. */
  readonly #empty = new Set<number>();
  /** The minute in which the last sweep ended. It may have more rows after `behind`, or may still get them. */
  #reached: { readonly minute: number; readonly behind: ExpiryRow } | null = null;

  constructor(session: CqlSession, remove: Remove) {
    this.#session = session;
    this.#remove = remove;
  }

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

  /** Reads a minute from where the last sweep ended, and then, if it began later, once more from the beginning. */
  async #sweepMinute(minute: number, now: number, limit: number): Promise<Pass> {
    const from = this.#reached?.minute === minute ? this.#reached.behind : beginning;
    const rest = await this.#pass(minute, now, from, limit);
    if (from === beginning) return rest;
    // Rows before `from` were not read, so a record of any time in the minute may be left.
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
    for (const part of inParts(rows, removalsAtOnceMax))
      outcomes.push(...(await Promise.all(part.map((row) => this.#removeOne(row)))));
    return outcomes;
  }

  async #removeOne({ at, kind, id, token }: ExpiryRow): Promise<Outcome> {
    const { shown, places, hasDamagedPlaces } = await readRecord(this.#session, kind, id);
    if (hasDamagedPlaces) return 'passed';
    if (shown === null || places.expiry?.token !== token) {
      await dropPlaces(this.#session, kind, id, { ...noPlaces, expiry: { at, token } });
      return 'cleared';
    }
    // If the record has another version by now, that version may have the same expiry.
    return (await this.#remove(kind, id, shown.version)) ? 'removed' : { leftAt: at };
  }
}
