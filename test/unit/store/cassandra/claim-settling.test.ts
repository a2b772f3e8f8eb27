import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import { type CqlSession, MaybeApplied, numberOf } from '../../../../src/store/cassandra/session/session.ts';
import { OutcomeUnknown } from '../../../../src/store/ledger-store.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { SimulatedTables } from '../../../simulation/tables.ts';
import { entriesAfter, entriesFor, newLedgerId } from '../../../support/store-entries.ts';

const bucketEvents = 8;

/**
 * A session with replicas of which one alone has what was committed last: others see its static columns by their
 * repair, but none of its rows, until something settles the partition.
 */
function halfCommitted(session: CqlSession) {
  const unsettled = new Map<unknown, number>();
  const serialReads: unknown[] = [];
  let isHalf = false;
  const around: CqlSession = {
    ...session,
    async read(statement, { serial = false } = {}) {
      const [, bucket] = statement.params;
      if (serial) {
        serialReads.push(bucket);
        unsettled.delete(bucket);
      }
      const from = unsettled.get(bucket) ?? Number.POSITIVE_INFINITY;
      const rows = await session.read(statement);
      const isOfRows = /^SELECT .*\brow\b.* FROM ledger_event/.test(statement.cql);
      return isOfRows ? rows.filter((row) => (numberOf(row, 'seq') ?? 0) < from) : rows;
    },
    async decide(statements) {
      const bucket = statements[1]?.params[1];
      const decision = await session.decide(statements);
      if (!isHalf || bucket === undefined) return decision;
      isHalf = false;
      unsettled.set(bucket, Number(statements[1]?.params[2]));
      throw new MaybeApplied(new Error('injected'));
    },
  };
  return {
    session: around,
    serialReads,
    halveNext: () => {
      isHalf = true;
    },
  };
}

function newStore() {
  const halves = halfCommitted(directSession(new SimulatedTables()));
  const parts = { session: halves.session, now: Date.now, random: randomBytes, bucketEvents };
  return { ...halves, store: new CassandraLedgerStore(parts), other: new CassandraLedgerStore(parts) };
}

test.each(['the same node', 'another one'])(
  'a claim by %s settles the full bucket before it, whose events are read and followed',
  async (who) => {
    const { store, other, serialReads, halveNext } = newStore();
    const claim = await store.claim(newLedgerId());
    await store.append(claim, entriesFor(claim, 5));
    const last = entriesAfter(await store.head(claim.ledgerId), 3);
    halveNext();
    await expect(store.append(claim, last)).rejects.toBeInstanceOf(OutcomeUnknown);
    expect((await other.read(claim.ledgerId, 0, 100)).length).toBe(5);
    const next = who === 'another one' ? other : store;
    const newer = await next.claim(claim.ledgerId);
    expect(newer.head?.seq).toBe(7);
    expect((await other.read(claim.ledgerId, 0, 100)).map(({ seq }) => seq)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(serialReads).toEqual([0]);
    await next.append(newer, entriesAfter(newer.head, 1));
    expect((await other.read(claim.ledgerId, 0, 100)).length).toBe(9);
  },
);

test('a claim of a bucket that is not full reads nothing to settle it', async () => {
  const { store, serialReads } = newStore();
  const claim = await store.claim(newLedgerId());
  await store.append(claim, entriesFor(claim, 5));
  await store.claim(claim.ledgerId);
  expect(serialReads).toEqual([]);
});
