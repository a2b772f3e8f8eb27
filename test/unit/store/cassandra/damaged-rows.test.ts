import { expect, test } from 'vitest';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import { formatAccessEvents } from '../../../../src/store/cassandra/access/access-block.ts';
import { tableChecks } from '../../../../src/store/cassandra/damaged-rows.ts';
import { accessHour } from '../../../../src/store/cassandra/keys.ts';
import { formatPlaces } from '../../../../src/store/cassandra/records/record-row.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';

const nowMs = Date.UTC(2026, 10, 21);
const dayMs = 24 * 60 * 60_000;

/** What is wrong with a row while `missing` has no rows, and each other table has the row that is asked for. */
function wrong(table: string, row: Row, missing: string): Promise<string | null> | string | null | undefined {
  const session: CqlSession = {
    read: async ({ cql }) => (cql.includes(` FROM ${missing} `) ? [] : [{ version: '1' }]),
    write: async () => {},
    decide: async () => ({ applied: true, row: {} }),
  };
  return tableChecks.find((check) => check.table === table)?.wrong(session, row, nowMs);
}

const lookups = [{ name: 'all', value: 'x', order: 'o', token: 't' }];
const places = formatPlaces({ lookups, expiry: { at: nowMs, token: 't' } });
const record = { kind: 'k', id: 'i', version: '1', value: '{}', places };

test.each([
  ['nothing', null],
  ['record_lookup', 'record_lookup lacks its row all'],
  ['record_expiry', 'record_expiry lacks its row'],
  ['record_expiry_minute', `record_expiry_minute lacks minute ${nowMs / 60_000}`],
])('a record without its rows in %s: %s', async (missing, expected) => {
  const found = await wrong('record', record, missing);
  if (expected === null) expect(found).toBeNull();
  else expect(found).toContain(expected);
  expect(await wrong('record', { ...record, version: 'replaced since' }, missing)).toBeNull();
});

function block(atMs: number): Row {
  const id = uuidV7(atMs, Buffer.alloc(10));
  const event = { id, actorId: 'a', apiKeyId: null, ledgerId: null, method: 'GET', path: '/', requestId: 'r' };
  const events = formatAccessEvents([{ ...event, responseStatus: 200 }]);
  return { actor_id: 'a', hour: accessHour(atMs), ledger_id: '', first_id: id, count: 1, events };
}

test('a block of access events whose hour is not listed is reported, unless both are about to expire', async () => {
  expect(await wrong('access_block', block(nowMs), 'nothing')).toBeNull();
  expect(await wrong('access_block', block(nowMs), 'access_hour')).toContain('access_hour lacks hour');
  expect(await wrong('access_block', block(nowMs - 90 * dayMs), 'access_hour')).toContain('access_hour lacks hour');
  expect(await wrong('access_block', block(nowMs - 98 * dayMs), 'access_hour')).toBeNull();
});

test('a fact with another form is reported', async () => {
  const id = 'a0'.repeat(16);
  expect(await wrong('fact', { name: 'keyspace-id', value: id }, 'nothing')).toBeNull();
  expect(await wrong('fact', { name: 'keyspace-id', value: `${id}0` }, 'nothing')).toContain('keyspace-id is no id');
  expect(await wrong('fact', { name: 'schema-version', value: 'x' }, 'nothing')).toContain('is no number');
});

const keptDays = 90;
const hoursOf = (days: number) => String(accessHour(nowMs - days * dayMs));

test.each([
  ['shard-count', ['1', '256', '65536'], ['0', '65537', '300000000', '1e3', ' 4', '-1', '4.5']],
  ['bucket-events', ['8', '1024'], ['0', '1e3', '9999999', '-1']],
  ['schema-version', ['0', '2'], ['', '-1', '999999999999999']],
  [
    'access-kept-from-hour',
    ['0', '5', hoursOf(keptDays)],
    ['-5', '1e3', hoursOf(keptDays - 2), '600000', '9'.repeat(15)],
  ],
])('the fact %s is reported with a value that no node stores, and no other', async (name, sound, damaged) => {
  for (const value of sound) expect(await wrong('fact', { name, value }, 'nothing')).toBeNull();
  for (const value of damaged) expect(await wrong('fact', { name, value }, 'nothing')).toContain(`the fact ${name} `);
});

test('a block of access events with a field of another type, or of another hour, is reported', async () => {
  const sound = block(nowMs);
  const [[id, ...fields]] = JSON.parse(String(sound.events)) as [[string, ...unknown[]]];
  const withFields = (...changed: readonly unknown[]) => ({ ...sound, events: JSON.stringify([[id, ...changed]]) });
  expect(await wrong('access_block', withFields(...fields), 'nothing')).toBeNull();
  for (const [at, value] of [
    [0, 7],
    [1, {}],
    [2, null],
    [3, 'x\ud800'],
    [4, 'many'],
    [4, 1e12],
    [4, 0.5],
    [5, null],
  ] as const) {
    const row = withFields(...fields.with(at, value));
    expect(await wrong('access_block', row, 'nothing')).toBe('events cannot be read');
  }
  expect(await wrong('access_block', { ...sound, hour: 1 }, 'nothing')).toContain('not of hour 1');
});
