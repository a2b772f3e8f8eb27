import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { SimulatedTables } from '../../../simulation/tables.ts';
import { entriesFor, newLedgerId } from '../../../support/store-entries.ts';

const nowMs = Date.UTC(2026, 10, 27);
const minuteMs = 60_000;

function newStore() {
  const tables = new SimulatedTables();
  const store = new CassandraLedgerStore({ session: directSession(tables), now: () => nowMs, random: randomBytes });
  return { store, write: (cql: string, ...params: readonly unknown[]) => tables.write([{ cql, params }]) };
}

test.each([true, false])('a scope is not read from a bucket below 0: descending %s', async (descending) => {
  const { store, write } = newStore();
  const claim = await store.claim(newLedgerId());
  const { ledgerId } = claim;
  await store.append(claim, entriesFor(claim, 3, { projections: () => [{ kind: 'scope', scope: 's' }] }));
  write('INSERT INTO scope_bucket (ledger_id, scope, bucket) VALUES (?, ?, ?)', ledgerId, 's', -1);
  const insert = 'INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, ?, ?, ?)';
  write(insert, ledgerId, -1, 's', 2n, '2');
  write(insert, ledgerId, -1, '', 2n, 'forged');
  const { entries } = await store.readScope(ledgerId, 's', { limit: 10, descending });
  expect(entries.filter(({ row }) => row === 'forged')).toEqual([]);
  expect(entries.map(({ seq }) => seq)).toEqual(descending ? [2, 1, 0] : [0, 1, 2]);
});

test.each([
  ['ahead, which says nothing', nowMs + 6 * minuteMs, 1],
  ['within the skew of clocks', nowMs + 4 * minuteMs, 99],
])('a snapshot of another fold version that was saved %s', async (_, savedAt, foldVersion) => {
  const { store, write } = newStore();
  const [hash, state] = ['h', '{}'];
  await store.saveSnapshot('owner', { foldVersion: 1, seq: 7, hash, state });
  write(
    'INSERT INTO snapshot (owner, fold_version, seq, hash, state, saved_at) VALUES (?, ?, ?, ?, ?, ?)',
    ...['owner', 99, 9n, hash, state, BigInt(savedAt)],
  );
  expect((await store.snapshot('owner'))?.foldVersion).toBe(foldVersion);
});
