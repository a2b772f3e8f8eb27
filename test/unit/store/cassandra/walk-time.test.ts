import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { CassandraInspection } from '../../../../src/store/cassandra/inspection.ts';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';
import type { DamagedRow } from '../../../../src/store/store-inspection.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { SimulatedTables } from '../../../simulation/tables.ts';
import { entriesAfter, headOf, newLedgerId } from '../../../support/store-entries.ts';

const bucketEvents = 4;
const minuteMs = 60_000;

/** An inspection whose reads take ten minutes each, of a ledger whose cells are dated `aheadMs` after their read. */
async function slowWalk(aheadMs: number) {
  const direct = directSession(new SimulatedTables());
  let nowMs = Date.UTC(2026, 10, 21);
  const now = () => nowMs;
  const store = new CassandraLedgerStore({ session: direct, now, random: randomBytes, bucketEvents });
  const ledgerId = newLedgerId();
  const claim = await store.claim(ledgerId);
  let head = claim.head;
  for (let batch = 0; batch < 6; batch++) {
    const entries = entriesAfter(head, 2, { projections: () => [{ kind: 'scope', scope: 's' }] });
    await store.append(claim, entries);
    head = headOf(entries);
  }
  const redated = (row: Row): Row => {
    const times = Object.keys(row).filter((name) => name.startsWith('writetime(') && name !== 'writetime(bucket)');
    return { ...row, ...Object.fromEntries(times.map((name) => [name, BigInt(nowMs + aheadMs) * 1_000n])) };
  };
  const largePages: string[] = [];
  const session: CqlSession = {
    ...direct,
    read: async (statement, options) => {
      if (options?.pageRows !== undefined && /\brow\b/.test(statement.cql)) largePages.push(statement.cql);
      nowMs += 10 * minuteMs;
      if (statement.cql.includes(' FROM command ')) return [redated({ id: 'i', 'writetime(seq)': 0n })];
      // No row is in the wrong bucket.
      if (/ seq [<>] /.test(statement.cql)) return [];
      const cql = statement.cql.replace("scope > ''", "scope >= 's'");
      return (await direct.read({ ...statement, cql }, options)).map(redated);
    },
  };
  const inspection = new CassandraInspection({ session, now, bucketEvents });
  return { inspection, ledgerId, largePages };
}

async function misdatedIn(rows: AsyncIterable<DamagedRow>): Promise<number> {
  let count = 0;
  for await (const { type } of rows) if (type === 'wrong_writetime') count += 1;
  return count;
}

test.each([
  [0, 0],
  [6 * minuteMs, 3 + 12 + 6],
])('of the rows of a log that are dated %i ms after their read, %i are ahead', async (aheadMs, expected) => {
  const { inspection, ledgerId } = await slowWalk(aheadMs);
  expect(await misdatedIn(inspection.damagedRowsOf(ledgerId))).toBe(expected);
});

test.each([
  [0, false],
  [6 * minuteMs, true],
])('rows beside a log that are dated %i ms after their read are ahead: %s', async (aheadMs, expected) => {
  const { inspection, ledgerId } = await slowWalk(aheadMs);
  const names = { ledgerId, cells: [], lists: [], isOwnLine: () => true, owners: [] };
  expect((await misdatedIn(inspection.misdatedRows(names))) > 0).toBe(expected);
});

test('a walk reads the rows of events in pages of the default size, also for their times alone', async () => {
  const { inspection, ledgerId, largePages } = await slowWalk(0);
  await misdatedIn(inspection.damagedRowsOf(ledgerId));
  expect(largePages).toEqual([]);
});
