import { expect, test } from 'vitest';
import { uuidV7 } from '../../../../src/domain/values/uuid.ts';
import { accessHour, formatAccessEvents } from '../../../../src/store/cassandra/access/access-block.ts';
import { tableChecks } from '../../../../src/store/cassandra/damaged-rows.ts';
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
