import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import { type CqlSession, MaybeApplied } from '../../../../src/store/cassandra/session/session.ts';
import { OutcomeUnknown } from '../../../../src/store/ledger-store.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { type HalfDone, SimulatedTables } from '../../../simulation/tables.ts';
import { entriesAfter, entriesFor, headOf, newLedgerId } from '../../../support/store-entries.ts';

const bucketEvents = 8;

function newStore() {
  const tables = new SimulatedTables();
  const direct = directSession(tables);
  let halfDone: HalfDone | null = null;
  const statements: string[] = [];
  const serialBuckets: unknown[] = [];
  const session: CqlSession = {
    ...direct,
    read: (statement, options) => {
      if (options?.serial === true) serialBuckets.push(statement.params[1]);
      statements.push(statement.cql);
      return direct.read(statement, options);
    },
    write: (all) => {
      statements.push(...all.map(({ cql }) => cql));
      return direct.write(all);
    },
    decide: async (all) => {
      statements.push(...all.map(({ cql }) => cql));
      if (halfDone === null) return direct.decide(all);
      tables.decide(all, false, halfDone);
      halfDone = null;
      throw new MaybeApplied(new Error('injected'));
    },
  };
  const parts = { session, now: Date.now, random: randomBytes, bucketEvents };
  return {
    store: new CassandraLedgerStore(parts),
    other: new CassandraLedgerStore(parts),
    statements,
    serialBuckets,
    halveNext: (how: HalfDone) => {
      halfDone = how;
    },
  };
}

test.each<[HalfDone, number, boolean]>([
  ['completed', 3, true],
  ['completed', 5, true],
  ['rows_completed', 3, true],
  ['rows_completed', 5, true],
  ['dropped', 3, false],
])('an append that one replica alone has (%s, %i events) is settled by the certain head', async (how, size, lands) => {
  const { store, other, halveNext } = newStore();
  const claim = await store.claim(newLedgerId());
  const { ledgerId } = claim;
  const first = entriesFor(claim, 3);
  await store.append(claim, first);
  const second = entriesAfter(headOf(first), size);
  halveNext(how);
  await expect(store.append(claim, second)).rejects.toBeInstanceOf(OutcomeUnknown);
  const expected = lands ? [...first, ...second] : first;
  expect(await other.certainHead(ledgerId)).toEqual(headOf(expected));
  expect(await other.head(ledgerId)).toEqual(headOf(expected));
  expect((await other.read(ledgerId, 0, 20)).map(({ seq }) => seq)).toEqual(expected.map(({ seq }) => seq));
});

test('the first batch of a ledger is settled too', async () => {
  const { store, other, halveNext } = newStore();
  const claim = await store.claim(newLedgerId());
  const entries = entriesFor(claim, 2);
  halveNext('completed');
  await expect(store.append(claim, entries)).rejects.toBeInstanceOf(OutcomeUnknown);
  expect(await other.head(claim.ledgerId)).toBeNull();
  expect(await other.certainHead(claim.ledgerId)).toEqual(headOf(entries));
});

test.each([
  [[], 0],
  [[3], 0],
  [[8], 0],
  [[8, 1], 1],
  [[5, 5], 0],
  [[8, 8, 8, 3], 3],
])('of a log with batches %j the certain head reads bucket %i at SERIAL, and writes nothing', async (sizes, bucket) => {
  const { store, other, statements, serialBuckets } = newStore();
  const claim = await store.claim(newLedgerId());
  let { head } = claim;
  for (const size of sizes) {
    const entries = entriesAfter(head, size);
    await store.append(claim, entries);
    head = headOf(entries);
  }
  for (const asked of [store, other]) {
    statements.length = 0;
    serialBuckets.length = 0;
    expect(await asked.certainHead(claim.ledgerId)).toEqual(head);
    expect(serialBuckets).toEqual([bucket]);
    expect(statements.filter((cql) => !cql.startsWith('SELECT '))).toEqual([]);
  }
  await store.append(claim, entriesAfter(head, 1));
});
