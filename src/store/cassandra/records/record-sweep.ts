import { LedgerError } from '../../../domain/errors.ts';
import type { Swept } from '../../record-store.ts';
import { tellUnreadable, UnreadableRecord } from '../../unreadable-record.ts';
import { textOfKey } from '../keys.ts';
import { bigintOf, type CqlSession, inParts, textOf } from '../session/session.ts';
import { DROP_EXPIRY, isRecordId, minuteOf, readRecord } from './record-row.ts';

const MINUTES = 'SELECT minute FROM record_expiry_minute WHERE part = 0 AND minute >= ? AND minute <= ? LIMIT ?';
const EXPIRED =
  'SELECT expires_at, kind, id, put_token FROM record_expiry WHERE minute = ? AND (expires_at) < (?) AND (expires_at, kind, id, put_token) > (?, ?, ?, ?) LIMIT ?';
const DROP_MINUTE = 'DELETE FROM record_expiry_minute WHERE part = 0 AND minute = ?';

const minutesMax = 1_000;
const rowsAtOnceMax = 64;
const removalsAtOnceMax = 8;
/** An empty minute is unlisted this long after its end: no put that expires in it is in flight then. */
const settledMs = 60 * 60 * 1000;
const minuteMs = 60_000;
/** Sorts before every minute. */
const lowestMinute = -(2n ** 63n);

/** As it is stored. The time may belong into another minute. */
interface ExpiryRow {
  readonly at: bigint;
  readonly kind: string;
  readonly id: string;
  readonly token: string;
}

const beginning: ExpiryRow = { at: -1n, kind: '', id: '', token: '' };

type Remove = (kind: string, id: string, version: string) => Promise<boolean>;

/** Where the next sweep goes on. */
interface Place {
  readonly minute: bigint;
  /** The last row that was read. */
  readonly behind: ExpiryRow;
  /** Set while the minute is read once more: `leftAt` of what was read of it so far. */
  readonly againLeft?: number;
}

/**
 * Of an expiry row. `removed`: with its record. `cleared`: it belonged to no record. `passed`: it or its record is
 * damaged. `leftAt`: the record may still be there, and expired then.
 */
type Outcome = 'removed' | 'cleared' | 'passed' | { readonly leftAt: number };

interface Pass {
  /** Whether the pass came to the end of the minute. If not, the limit was reached. */
  readonly isAtEnd: boolean;
  readonly behind: ExpiryRow;
  readonly looked: number;
  readonly removed: number;
  /** When the oldest of the records expired that were looked at and are left. Infinity if none is left. */
  readonly leftAt: number;
}

interface SweptMinute extends Omit<Pass, 'leftAt'> {
  readonly isEmpty: boolean;
  /** As in Swept. Infinity if none is left. */
  readonly oldestLeft: number;
  /** As in Place. */
  readonly againLeft?: number;
}

/**
 * Removes expired records, minute by minute, and expiry rows that no record refers to.
 *
 * Removed rows leave tombstones, which make reads slow. So a sweep goes on in a minute where the last sweep ended. It
 * does not see rows before that place that were put meanwhile or could not be removed. So at the end of the minute it
 * reads the minute once more from the beginning, and only then reports that nothing is left.
 *
 * Rows that stay, because their records are damaged, must not keep it from later minutes. So a minute is read once more
 * only once, however many sweeps that takes. Then the later minutes follow, and behind the last minute the first one.
 *
 * A minute that has ended and was found empty is not read again until an hour after its end. Then it is read once more,
 * and unlisted if it is still empty. A record put into the minute in between had expired before the put.
 */
export class RecordSweep {
  readonly #session: CqlSession;
  readonly #remove: Remove;
  /** Minutes that have ended and were found empty, and are still listed. */
  readonly #empty = new Set<bigint>();
  /** The minute in which the last sweep ended. It may have more rows after `behind`, or may still get them. */
  #reached: Place | null = null;

  constructor(session: CqlSession, remove: Remove) {
    this.#session = session;
    this.#remove = remove;
  }

  async sweep(now: number, limit: number): Promise<Swept> {
    const minutes = await this.#minutesFrom(this.#reached?.minute ?? lowestMinute, now);
    let removed = 0;
    let left = limit;
    let oldestLeft = Number.POSITIVE_INFINITY;
    for (const [at, minute] of minutes.entries()) {
      const endMs = (Number(minute) + 1) * minuteMs;
      const isOver = endMs <= now;
      const isSettled = endMs < now - settledMs;
      if (this.#empty.has(minute) && !isSettled) continue;
      const pass = await this.#sweepMinute(minute, now, left);
      removed += pass.removed;
      left -= pass.looked;
      oldestLeft = Math.min(oldestLeft, pass.oldestLeft);
      if (!pass.isAtEnd) {
        const { behind, againLeft } = pass;
        this.#reached = { minute, behind, ...(againLeft === undefined ? {} : { againLeft }) };
        return { removed, oldestLeft: Math.min(oldestLeft, ...this.#startsOf(minutes.slice(at + 1))) };
      }
      if (!isOver) this.#reached = { minute, behind: pass.behind };
      else if (this.#reached?.minute === minute) this.#reached = null;
      if (!pass.isEmpty || !isOver) continue;
      this.#empty.add(minute);
      if (!isSettled) continue;
      await this.#session.write([{ cql: DROP_MINUTE, params: [minute] }]);
      this.#empty.delete(minute);
    }
    const last = minutes.at(-1);
    if (last !== undefined && minutes.length === minutesMax) {
      oldestLeft = Math.min(oldestLeft, (Number(last) + 1) * minuteMs, now);
      this.#reached = { minute: last + 1n, behind: beginning };
    }
    return { removed, oldestLeft: Number.isFinite(oldestLeft) ? oldestLeft : null };
  }

  /** The minutes that are listed: those from `first` on, then those before it. */
  async #minutesFrom(first: bigint, now: number): Promise<bigint[]> {
    const listed = async (from: bigint, to: bigint, max: number) => {
      const rows = await this.#session.read({ cql: MINUTES, params: [from, to, max] });
      return rows.map((row) => bigintOf(row, 'minute') ?? 0n);
    };
    const minutes = await listed(first, minuteOf(now), minutesMax);
    const max = minutesMax - minutes.length;
    return first === lowestMinute || max === 0
      ? minutes
      : [...minutes, ...(await listed(lowestMinute, first - 1n, max))];
  }

  /** When the minutes begin in which something may be left. */
  #startsOf(minutes: readonly bigint[]): number[] {
    return minutes.filter((minute) => !this.#empty.has(minute)).map((minute) => Number(minute) * minuteMs);
  }

  /** Reads a minute from where the last sweep ended, and then, if it began later, once more from the beginning. */
  async #sweepMinute(minute: bigint, now: number, limit: number): Promise<SweptMinute> {
    const startMs = Number(minute) * minuteMs;
    const place = this.#reached?.minute === minute ? this.#reached : null;
    const from = place?.behind ?? beginning;
    const rest = await this.#pass(minute, now, from, limit);
    if (place?.againLeft !== undefined) {
      const again = { ...rest, leftAt: Math.min(rest.leftAt, place.againLeft), isEmpty: false };
      return { ...again, oldestLeft: oldestLeftOf(again, startMs), againLeft: again.leftAt };
    }
    if (from === beginning)
      return { ...rest, isEmpty: rest.isAtEnd && rest.looked === 0, oldestLeft: oldestLeftOf(rest, startMs) };
    // Rows before `from` were not read, so a record of any time in the minute may be left.
    if (!rest.isAtEnd) return { ...rest, isEmpty: false, oldestLeft: startMs };
    const whole = await this.#pass(minute, now, beginning, limit - rest.looked);
    return {
      isAtEnd: whole.isAtEnd,
      isEmpty: whole.isAtEnd && whole.looked === 0,
      behind: whole.isAtEnd ? rest.behind : whole.behind,
      looked: rest.looked + whole.looked,
      removed: rest.removed + whole.removed,
      oldestLeft: oldestLeftOf(whole, startMs),
      againLeft: whole.leftAt,
    };
  }

  async #pass(minute: bigint, now: number, from: ExpiryRow, limit: number): Promise<Pass> {
    let behind = from;
    let looked = 0;
    let removed = 0;
    let leftAt = Number.POSITIVE_INFINITY;
    let isAtEnd = false;
    while (!isAtEnd && looked < limit) {
      const max = Math.min(limit - looked, rowsAtOnceMax);
      const rows = await this.#expired(minute, now, behind, max);
      for (const outcome of await this.#removeAll(minute, rows)) {
        if (outcome === 'removed') removed += 1;
        else if (typeof outcome === 'object') leftAt = Math.min(leftAt, outcome.leftAt);
      }
      looked += rows.length;
      behind = rows.at(-1) ?? behind;
      isAtEnd = rows.length < max;
    }
    return { isAtEnd, behind, looked, removed, leftAt };
  }

  async #expired(minute: bigint, now: number, behind: ExpiryRow, max: number): Promise<ExpiryRow[]> {
    const from = [behind.at, behind.kind, behind.id, behind.token];
    const rows = await this.#session.read({ cql: EXPIRED, params: [minute, BigInt(now), ...from, max] });
    return rows.map((row) => ({
      at: bigintOf(row, 'expires_at') ?? 0n,
      kind: textOf(row, 'kind') ?? '',
      id: textOf(row, 'id') ?? '',
      token: textOf(row, 'put_token') ?? '',
    }));
  }

  async #removeAll(minute: bigint, rows: readonly ExpiryRow[]): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (const part of inParts(rows, removalsAtOnceMax))
      outcomes.push(...(await Promise.all(part.map((row) => this.#removeOrPass(minute, row)))));
    return outcomes;
  }

  /** A row that Cassandra refuses to be asked about, or a record that it keeps, must not stop each sweep. */
  async #removeOrPass(minute: bigint, row: ExpiryRow): Promise<Outcome> {
    try {
      return await this.#removeOne(minute, row);
    } catch (error) {
      if (error instanceof UnreadableRecord) return 'passed';
      if (error instanceof LedgerError) throw error;
      tellUnreadable({ kind: textOfKey(row.kind), id: row.id, error });
      return 'passed';
    }
  }

  async #removeOne(minute: bigint, { at, kind: storedKind, id, token }: ExpiryRow): Promise<Outcome> {
    const kind = textOfKey(storedKind);
    const found = isRecordId(id) ? await readRecord(this.#session, kind, id) : null;
    if (found?.hasDamagedPlaces) return 'passed';
    if (found === null || found.shown === null || found.places.expiry?.token !== token) {
      // The partition is the one that was read: that of the time may be another one.
      await this.#session.write([{ cql: DROP_EXPIRY, params: [minute, at, storedKind, id, token] }]);
      return 'cleared';
    }
    // If the record has another version by now, that version may have the same expiry.
    return (await this.#remove(kind, id, found.shown.version)) ? 'removed' : { leftAt: Number(at) };
  }
}

/** Of a pass through a minute that begins at `startMs`. What it did not come to expires at its last row or later. */
function oldestLeftOf({ isAtEnd, behind, leftAt }: Pass, startMs: number): number {
  return isAtEnd ? leftAt : Math.min(leftAt, Math.max(Number(behind.at), startMs));
}
