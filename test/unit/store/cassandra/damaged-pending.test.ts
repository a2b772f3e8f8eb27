import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CassandraInspection } from '../../../../src/store/cassandra/inspection.ts';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import type { Statement } from '../../../../src/store/cassandra/session/session.ts';
import { UnreadableRecord } from '../../../../src/store/unreadable-record.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { SimulatedTables } from '../../../simulation/tables.ts';
import { entriesAfter, entriesFor, newLedgerId } from '../../../support/store-entries.ts';

const bucketEvents = 8;

/** A node, and another one that has a claim of an older ledger. `written` has what is written besides the log. */
async function twoNodes() {
  const session = directSession(new SimulatedTables());
  const written: Statement[] = [];
  const watched = {
    ...session,
    write: (statements: readonly Statement[]) => {
      written.push(...statements);
      return session.write(statements);
    },
  };
  const nodeOn = (on: typeof session) =>
    new CassandraLedgerStore({ session: on, now: Date.now, random: randomBytes, bucketEvents });
  const [before, store] = [nodeOn(session), nodeOn(watched)];
  const ledgerId = newLedgerId();
  await before.append(await before.claim(ledgerId), entriesAfter(null, 3));
  const setPending = (value: string) => {
    const cql = 'UPDATE ledger_event SET pending = ? WHERE ledger_id = ? AND bucket = ?';
    return session.write([{ cql, params: [value, ledgerId, 0] }]);
  };
  const newestBatch = () => new CassandraInspection({ session, now: Date.now, bucketEvents }).newestBatch(ledgerId);
  return { newestBatch, store, before, ledgerId, setPending, written };
}

const cellOf = (seq: number) => [['k', seq, 'v']];

test.each([
  ['a bucket that no int holds', [3_000_000_000, ['s'], [], [], []]],
  ['another bucket', [1, ['s'], [], [], []]],
  ['a cell of an event behind the end', [0, [], [], cellOf(3), []]],
  ['a command of an event behind the end', [0, [], [[2 ** 52, 'id', 'f', 1]], [], []]],
])(
  'a claim of a ledger whose pending projections name %s is refused as damage, and writes none',
  async (_, pending) => {
    const { store, ledgerId, setPending, newestBatch, written } = await twoNodes();
    await setPending(JSON.stringify(pending));
    await expect(store.claim(ledgerId)).rejects.toBeInstanceOf(UnreadableRecord);
    expect(written).toEqual([]);
    // So `--finish` waits for no claim that would write them.
    expect(await newestBatch()).toEqual({ projectedSeq: -1, pending: null });
    const other = await store.claim(newLedgerId());
    await store.append(other, entriesFor(other, 3));
  },
);

test('an append that finds damaged pending projections is refused as damage too', async () => {
  const { store, before, ledgerId, setPending } = await twoNodes();
  // The node that has the claim, if it has forgotten what it knew of the ledger, reads the store.
  const claim = await before.claim(ledgerId);
  await setPending(JSON.stringify([1, ['s'], [], [], []]));
  await expect(store.append(claim, entriesAfter(claim.head, 1))).rejects.toBeInstanceOf(UnreadableRecord);
});

test('a claim writes the pending projections of the newest batch', async () => {
  const { store, ledgerId, setPending, newestBatch } = await twoNodes();
  await setPending(JSON.stringify([0, ['s'], [[2, 'id', 'f', 1]], cellOf(2), []]));
  expect((await newestBatch()).pending).toHaveLength(3);
  await store.claim(ledgerId);
  expect(await store.cell('k')).toEqual({ version: 2, value: 'v' });
});
