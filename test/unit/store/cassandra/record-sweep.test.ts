import { describe, expect, test } from 'vitest';
import { formatPlaces } from '../../../../src/store/cassandra/records/record-row.ts';
import { RecordSweep } from '../../../../src/store/cassandra/records/record-sweep.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';

const minuteMs = 60_000;
const startMs = 100 * minuteMs;
const overMs = startMs + minuteMs;

/** One minute of expiries, each of a record of its own. `deletedRead` counts the deleted rows that reads met. */
function oneMinute() {
  const rows = new Map<number, 'stands' | 'deleted'>();
  const refused = new Set<number>();
  const damaged = new Set<number>();
  const counts = { deletedRead: 0 };
  const session: CqlSession = {
    async read({ cql, params }): Promise<Row[]> {
      if (cql.includes('FROM record_expiry_minute')) {
        const [first, last] = params.map(Number);
        const minute = startMs / minuteMs;
        return minute >= Number(first) && minute <= Number(last) ? [{ minute: BigInt(minute) }] : [];
      }
      if (cql.includes('FROM record ')) {
        if (damaged.has(Number(params[1]))) return [{ version: '1', value: '{}', places: 'x' }];
        const expiry = { at: Number(params[1]), token: 't' };
        return [{ version: '1', value: '{}', places: formatPlaces({ lookups: [], expiry }) }];
      }
      const [, now, from, , , , max] = params.map(Number);
      const found: Row[] = [];
      for (const [at, state] of [...rows].toSorted(([a], [b]) => a - b)) {
        if (at <= Number(from) || at >= Number(now)) continue;
        if (state === 'deleted') counts.deletedRead += 1;
        else found.push({ expires_at: BigInt(at), kind: 'k', id: `${at}`, put_token: 't' });
        if (found.length === max) break;
      }
      return found;
    },
    write: async () => {},
    decide: async () => ({ applied: true, row: {} }),
  };
  const remove = async (_: string, id: string) => {
    if (refused.has(Number(id))) return false;
    rows.set(Number(id), 'deleted');
    return true;
  };
  const sweeper = new RecordSweep(session, remove);
  return {
    refused,
    damaged,
    counts,
    /** Puts records that expire at these times after the beginning of the minute. */
    put: (...afterMs: readonly number[]) => {
      for (const ms of afterMs) rows.set(startMs + ms, 'stands');
    },
    left: () => [...rows].filter(([, state]) => state === 'stands').map(([at]) => at - startMs),
    sweep: async (now: number, limit: number) => {
      const { removed, oldestLeft } = await sweeper.sweep(now, limit);
      return { removed, oldestLeft: oldestLeft === null ? null : oldestLeft - startMs };
    },
  };
}

describe('a minute of expiring records', () => {
  test('is done when the records before its place are removed too', async () => {
    const { put, sweep, left } = oneMinute();
    put(10, 20, 30, 40, 50, 60);
    expect(await sweep(overMs, 4)).toEqual({ removed: 4, oldestLeft: 40 });
    put(5, 25);
    expect(await sweep(overMs, 100)).toEqual({ removed: 4, oldestLeft: null });
    expect(left()).toEqual([]);
  });

  test('is read from its beginning if a sweep found too few rows', async () => {
    const { put, sweep, left } = oneMinute();
    put(10, 20, 30, 40, 50, 60, 70);
    await sweep(overMs, 2);
    put(5, 6);
    expect(await sweep(overMs, 2)).toEqual({ removed: 2, oldestLeft: 0 });
    // Three are behind that place, and of the two at the beginning there is one too many.
    expect(await sweep(overMs, 4)).toEqual({ removed: 4, oldestLeft: 5 });
    expect(left()).toEqual([6]);
    expect(await sweep(overMs, 4)).toEqual({ removed: 1, oldestLeft: null });
  });

  test('passes over records with damaged places, and removes the records behind them', async () => {
    const { put, sweep, damaged, left } = oneMinute();
    put(10, 20, 30);
    damaged.add(startMs + 10);
    damaged.add(startMs + 20);
    expect(await sweep(overMs, 2)).toEqual({ removed: 0, oldestLeft: 20 });
    expect(await sweep(overMs, 100)).toEqual({ removed: 1, oldestLeft: null });
    // Their expiry rows stand too, as long as nobody knows where else they are named.
    expect(left()).toEqual([10, 20]);
  });

  test('has records left while a removal is refused', async () => {
    const { put, sweep, refused, left } = oneMinute();
    put(10, 20, 30);
    refused.add(startMs + 20);
    expect(await sweep(overMs, 100)).toEqual({ removed: 2, oldestLeft: 20 });
    expect(await sweep(overMs, 100)).toEqual({ removed: 0, oldestLeft: 20 });
    refused.clear();
    expect(await sweep(overMs, 100)).toEqual({ removed: 1, oldestLeft: null });
    expect(left()).toEqual([]);
  });

  test('has records left before its place too', async () => {
    const { put, sweep, refused, left } = oneMinute();
    put(10, 20, 30, 40);
    refused.add(startMs + 10);
    expect(await sweep(overMs, 2)).toEqual({ removed: 1, oldestLeft: 10 });
    expect(await sweep(overMs, 100)).toEqual({ removed: 2, oldestLeft: 10 });
    refused.clear();
    expect(await sweep(overMs, 100)).toEqual({ removed: 1, oldestLeft: null });
    expect(left()).toEqual([]);
  });

  test('is read once more at its end, however many sweeps it took, and then left alone', async () => {
    const { put, sweep, counts } = oneMinute();
    const rows = 50;
    put(...Array.from({ length: rows }, (_, at) => at));
    for (let done = 0; done < rows; done += 5) expect(await sweep(overMs, 5)).toMatchObject({ removed: 5 });
    expect(counts.deletedRead).toBe(0);
    for (let again = 0; again < 3; again++) {
      expect(await sweep(overMs, 5)).toEqual({ removed: 0, oldestLeft: null });
      expect(counts.deletedRead).toBe(rows);
    }
  });

  test('is continued while it runs, and later records before its place are found', async () => {
    const { put, sweep, left, counts } = oneMinute();
    put(...Array.from({ length: 40 }, (_, at) => at * 1_000));
    expect(await sweep(startMs + 20_000, 100)).toEqual({ removed: 20, oldestLeft: null });
    put(500);
    expect(await sweep(startMs + 30_000, 100)).toEqual({ removed: 11, oldestLeft: null });
    // From its beginning alone.
    expect(counts.deletedRead).toBe(30);
    expect(await sweep(overMs, 100)).toEqual({ removed: 10, oldestLeft: null });
    expect(left()).toEqual([]);
    expect(counts.deletedRead).toBe(30 + 41);
  });
});
