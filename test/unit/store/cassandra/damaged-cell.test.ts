import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { names } from '../../../../src/domain/event/projection.ts';
import { LedgerReading } from '../../../../src/service/reading/ledger-reading.ts';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';
import { uuid } from '../../../support/commands.ts';

/** A store whose cells are all the same row. */
function storeWith(rows: readonly Row[]): CassandraLedgerStore {
  const session: CqlSession = {
    read: async () => [...rows],
    write: async () => {},
    decide: async () => ({ applied: true, row: {} }),
  };
  return new CassandraLedgerStore({ session, now: Date.now, random: randomBytes, bucketEvents: 8 });
}

test.each([
  ['no row', [], null],
  ['a row', [{ version: 3, value: 'x' }], { version: 3, value: 'x' }],
  ['a row without a value', [{ version: 3, value: null }], { version: 3, value: '' }],
  ['a row without a version', [{ version: null, value: 'x' }], { version: -1, value: 'x' }],
])('a cell of %s is read for what it holds', async (_, rows, expected) => {
  expect(await storeWith(rows).cell(names.ledger(uuid(1)))).toEqual(expected);
});

test('a ledger stays closed where the cell that says so has lost its value', async () => {
  const status = (rows: readonly Row[]) => new LedgerReading(storeWith(rows), Date.now).ledgerStatus(uuid(1));
  expect(await status([])).toBe('OPEN');
  expect(await status([{ version: null, value: null }])).toBe('CLOSED');
});
