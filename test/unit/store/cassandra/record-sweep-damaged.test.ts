import { expect, test } from 'vitest';
import { formatPlaces, minuteOf } from '../../../../src/store/cassandra/records/record-row.ts';
import { RecordSweep } from '../../../../src/store/cassandra/records/record-sweep.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';
import { unreadableRecord } from '../../../../src/store/unreadable-record.ts';

const minuteMs = 60_000;
const first = 1_000n;
const startMs = Number(first) * minuteMs;
/** All minutes have ended, and the first one is to be unlisted once it is empty. */
const nowMs = startMs + 24 * 60 * minuteMs;
const limit = 25;

type Key = readonly [minute: bigint, at: bigint, kind: string, id: string, token: string];

/**
 * The expiry rows of a keyspace and its records. Records have the token `t`, and `damaged` ones damaged places.
 * A `kept` record has cells that are dated ahead, so that its removal leaves it.
 */
function keyspace() {
  let rows: Key[] = [];
  const minutes = new Set<bigint>();
  const records = new Map<string, 'sound' | 'damaged' | 'kept'>();
  const isBehind = (row: Key, behind: readonly unknown[]) => {
    for (const [at, value] of behind.entries()) {
      const own = row[at + 1];
      if (own !== value) return (own ?? '') > (value as string | bigint);
    }
    return false;
  };
  const session: CqlSession = {
    async read({ cql, params }): Promise<Row[]> {
      if (cql.includes('FROM record_expiry_minute')) {
        const [from, to, max] = params as [bigint, bigint, number];
        const listed = [...minutes].filter((minute) => minute >= from && minute <= to);
        return listed
          .toSorted((a, b) => (a < b ? -1 : 1))
          .slice(0, max)
          .map((minute) => ({ minute }));
      }
      if (cql.includes('FROM record ')) {
        if (String(params[1]).length > 1_024 || params[1] === '') throw new Error('Key may not be empty or too long');
        const state = records.get(String(params[1]));
        if (state === undefined) return [];
        const places = formatPlaces({ lookups: [], expiry: { at: startMs, token: 't' } });
        return [{ version: '1', value: '{}', places: state === 'damaged' ? 'x' : places }];
      }
      const [minute, now, ...rest] = params as [bigint, bigint, ...unknown[]];
      const found = rows.filter((row) => row[0] === minute && row[1] < now && isBehind(row, rest.slice(0, 4)));
      const inOrder = found.toSorted((a, b) => (isBehind(a, b.slice(1)) ? 1 : -1)).slice(0, rest[4] as number);
      return inOrder.map(([, expires_at, kind, id, put_token]) => ({ expires_at, kind, id, put_token }));
    },
    async write(statements) {
      for (const { cql, params } of statements)
        if (cql.includes('FROM record_expiry_minute')) minutes.delete(params[0] as bigint);
        else rows = rows.filter((row) => row.some((value, at) => value !== params[at]));
    },
    decide: async () => ({ applied: true, row: {} }),
  };
  const sweeper = new RecordSweep(session, async (kind, id) => {
    if (records.get(id) === 'kept') throw unreadableRecord(kind, id, 'dated ahead');
    return records.delete(id);
  });
  const sweeps = async (count: number) => {
    for (let n = 0; n < count; n++) await sweeper.sweep(nowMs, limit);
  };
  return {
    put: (minute: bigint, at: bigint, id: string, state: 'sound' | 'damaged' | 'kept' | 'none', kind = 'k') => {
      minutes.add(minute);
      rows.push([minute, at, kind, id, 't']);
      if (state !== 'none') records.set(id, state);
    },
    list: (minute: bigint) => minutes.add(minute),
    sweeps,
    rows: () => rows.length,
    minutes: () => [...minutes],
    records: () => [...records.keys()],
  };
}

test('rows of no record are deleted in the minute in which they stand, whatever time they name', async () => {
  const { put, sweeps, rows, minutes, records } = keyspace();
  for (let n = 0; n < 60; n++) put(first, BigInt(n), `forged ${n}`, 'none');
  put(first + 1n, BigInt(startMs + minuteMs), 'real', 'sound');
  await sweeps(10);
  expect({ rows: rows(), records: records(), minutes: minutes() }).toEqual({ rows: 0, records: [], minutes: [] });
});

test('rows that name a kind or an id that no record has are deleted as they stand', async () => {
  const { put, sweeps, rows } = keyspace();
  for (const id of ['', 'x'.repeat(2_000)]) put(first, 1n, id, 'none');
  for (const kind of ['', '\0', '\0#x']) put(first, 1n, 'i', 'none', kind);
  await sweeps(2);
  expect(rows()).toBe(0);
});

test('records with damaged places keep no later minute from being swept, however many they are', async () => {
  const { put, sweeps, records } = keyspace();
  for (let n = 0; n < 3 * limit; n++) put(first, BigInt(startMs + n), `damaged ${n}`, 'damaged');
  for (const minute of [first + 1n, first + 2n]) put(minute, minute * BigInt(minuteMs), `real ${minute}`, 'sound');
  await sweeps(8);
  expect(records().filter((id) => id.startsWith('real'))).toEqual([]);
  expect(records()).toHaveLength(3 * limit);
  // Also those that are put later, and in an earlier minute.
  put(first + 3n, (first + 3n) * BigInt(minuteMs), 'real later', 'sound');
  put(first - 1n, (first - 1n) * BigInt(minuteMs), 'real earlier', 'sound');
  await sweeps(16);
  expect(records().filter((id) => id.startsWith('real'))).toEqual([]);
});

test('a record that Cassandra keeps keeps no other record from being swept', async () => {
  const { put, sweeps, records } = keyspace();
  put(first, BigInt(startMs), 'kept', 'kept');
  put(first, BigInt(startMs + 1), 'real', 'sound');
  put(first + 1n, (first + 1n) * BigInt(minuteMs), 'real later', 'sound');
  await sweeps(2);
  expect(records()).toEqual(['kept']);
});

test('more minutes with damaged records than a sweep reads keep no later minute from being swept', async () => {
  const { put, sweeps, records } = keyspace();
  const old = minuteOf(nowMs) - 1_500n;
  for (let n = 0n; n < 1_200n; n++) put(old + n, (old + n) * BigInt(minuteMs), `damaged ${n}`, 'damaged');
  put(old + 1_200n, (old + 1_200n) * BigInt(minuteMs), 'real', 'sound');
  await sweeps(1_200 / limit + 2);
  expect(records()).not.toContain('real');
});

test('minutes that no number holds exactly are unlisted', async () => {
  const { list, sweeps, minutes } = keyspace();
  for (const minute of [-(2n ** 63n), -(2n ** 63n) + 1n, -(2n ** 53n) - 1n]) list(minute);
  await sweeps(1);
  expect(minutes()).toEqual([]);
});
