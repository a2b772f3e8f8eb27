import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import type { CqlSession } from '../../../../src/store/cassandra/session/session.ts';
import { OutcomeUnknown } from '../../../../src/store/ledger-store.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { SimulatedTables } from '../../../simulation/tables.ts';
import { entriesAfter, headOf } from '../../../support/store-entries.ts';

const bucketEvents = 4;
const ledgerId = 'the-ledger';
/** Two for each power of two that a CQL int holds, and the hint. */
const readsMax = 64;

/** A ledger on a Cassandra in memory, a store that has not read it yet, and a count of the store's reads. */
async function ledgerOf(events: number) {
  const tables = new SimulatedTables();
  const direct = directSession(tables);
  const newStore = (session: CqlSession) =>
    new CassandraLedgerStore({ session, now: () => 0, random: randomBytes, bucketEvents });
  const writer = newStore(direct);
  const claim = await writer.claim(ledgerId);
  let head = claim.head;
  for (let done = 0; done < events; done += 2) {
    const entries = entriesAfter(head, 2, { projections: () => [{ kind: 'scope', scope: 's' }] });
    await writer.append(claim, entries);
    head = headOf(entries);
  }
  const count = { reads: 0, onRead: () => {} };
  const counting: CqlSession = {
    ...direct,
    read: (statement, options) => {
      count.reads += 1;
      count.onRead();
      if (count.reads > 1_000) throw new Error('reads without end');
      return direct.read(statement, options);
    },
  };
  const set = (cql: string, ...params: readonly unknown[]) => tables.write([{ cql, params }]);
  return {
    head,
    store: newStore(counting),
    count,
    addRow: (bucket: number, scope: string, seq: number, row: string | null) =>
      set(
        'INSERT INTO ledger_event (ledger_id, bucket, scope, seq, row) VALUES (?, ?, ?, ?, ?)',
        ...[ledgerId, bucket, scope, BigInt(seq), row],
      ),
    hint: (bucket: unknown) => set('INSERT INTO ledger (ledger_id, bucket) VALUES (?, ?)', ledgerId, bucket),
    setHead: (bucket: number, seq: unknown, hash: unknown) =>
      set(
        'UPDATE ledger_event SET head_seq = ?, head_hash = ? WHERE ledger_id = ? AND bucket = ?',
        ...[seq, hash, ledgerId, bucket],
      ),
  };
}

test.each([null, -1, 0, 1, 3, 7, 9, 1_000, 2 ** 31 - 1, -(2 ** 31)])(
  'a hint of bucket %s in a log of nine leads to its end in few reads',
  async (bucket) => {
    const { head, store, count, hint } = await ledgerOf(34);
    hint(bucket);
    expect(await store.head(ledgerId)).toEqual(head);
    expect(count.reads).toBeLessThan(readsMax);
    count.reads = 0;
    expect((await store.claim(ledgerId)).head).toEqual(head);
    expect(count.reads).toBeLessThan(readsMax);
  },
);

test('looking for the end of a log stops once the caller has gone', async () => {
  const { store, count, hint } = await ledgerOf(34);
  hint(1_000);
  const caller = new AbortController();
  count.onRead = () => {
    if (count.reads === 4) caller.abort(new Error('gone'));
  };
  await expect(store.head(ledgerId, caller.signal)).rejects.toThrow('gone');
  expect(count.reads).toBe(4);
});

test('a wrong hint of an empty ledger takes few reads', async () => {
  const { store, count, hint } = await ledgerOf(0);
  hint(2 ** 31 - 1);
  expect(await store.head(ledgerId)).toBeNull();
  expect(count.reads).toBeLessThan(readsMax);
});

test('the usual search reads the hint, its bucket, and the next one behind a full bucket', async () => {
  const half = await ledgerOf(34);
  await half.store.head(ledgerId);
  expect(half.count.reads).toBe(2);
  const full = await ledgerOf(36);
  await full.store.head(ledgerId);
  expect(full.count.reads).toBe(3);
});

test.each([
  ['far beyond its bucket', 2n ** 62n, '1'.repeat(64)],
  ['below its bucket', 0n, '1'.repeat(64)],
  ['negative', -5n, '1'.repeat(64)],
  ['without a hash', 33n, null],
  ['a hash alone', null, '1'.repeat(64)],
  ['gone, with the rows still there', null, null],
] as const)('a newest head that is %s hides no event, and no event has its hash', async (_name, seq, hash) => {
  const { store, setHead } = await ledgerOf(34);
  setHead(8, seq, hash);
  expect(await store.head(ledgerId)).toEqual({ seq: 33, hash: '' });
  expect((await store.read(ledgerId, 0, 100)).length).toBe(34);
  const claim = await store.claim(ledgerId);
  expect(claim.head).toEqual({ seq: 33, hash: '' });
  // Nothing can be appended to a head that no event has.
  const next = entriesAfter({ seq: 33, hash: '0'.repeat(64) }, 1);
  await expect(store.append(claim, next)).rejects.not.toBeInstanceOf(OutcomeUnknown);
});

test('rows in the wrong bucket are no part of the log, and a row without text is an entry without text', async () => {
  const { store, addRow } = await ledgerOf(34);
  const whole = await store.read(ledgerId, 0, 100);
  addRow(0, '', -3, 'x');
  addRow(0, '', 5, 'x');
  addRow(0, '', 900, 'x');
  addRow(3, '', 2, 'x');
  addRow(8, '', 1_000, 'x');
  expect(await store.read(ledgerId, 0, 100)).toEqual(whole);
  expect(await store.read(ledgerId, 4, 10)).toEqual(whole.slice(4, 14));
  addRow(2, '', 9, null);
  const seqsWithoutText = (await store.read(ledgerId, 0, 100)).flatMap(({ seq, row }) => (row === '' ? [seq] : []));
  expect(seqsWithoutText).toEqual([9]);
  expect(await store.read(ledgerId, 2 ** 50, 10)).toEqual([]);
});

test.each(['', 'NaN', '-1', '1e3', '9'.repeat(20), 'x 2 3', null])(
  'a row of a scope with %j lists no missing event',
  async (row) => {
    const { store, addRow } = await ledgerOf(4);
    addRow(0, 's', 1, row);
    const { entries, missing } = await store.readScope(ledgerId, 's', { limit: 100 });
    expect(entries.map(({ seq }) => seq)).toEqual([0, 1, 2, 3]);
    expect(missing).toEqual([]);
  },
);
