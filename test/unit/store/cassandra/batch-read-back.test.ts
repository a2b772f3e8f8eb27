import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { CassandraLedgerStore } from '../../../../src/store/cassandra/log/ledger-store.ts';
import type { CqlSession, Row } from '../../../../src/store/cassandra/session/session.ts';
import { OutcomeUnknown } from '../../../../src/store/ledger-store.ts';
import { directSession } from '../../../simulation/cassandra.ts';
import { SimulatedTables } from '../../../simulation/tables.ts';
import { entriesFor, newLedgerId } from '../../../support/store-entries.ts';

/** A claim whose first batch is read back with `answer`, which is given the number of the read and its true rows. */
async function readBackBy(answer: (read: number, rows: Row[]) => Row[]) {
  const direct = directSession(new SimulatedTables());
  const count = { reads: 0 };
  const session: CqlSession = {
    ...direct,
    read: async (statement, options) => {
      const rows = await direct.read(statement, options);
      if (!statement.cql.startsWith('SELECT seq, row, head_seq ')) return rows;
      count.reads += 1;
      return answer(count.reads, rows);
    },
  };
  const store = new CassandraLedgerStore({ session, now: Date.now, random: randomBytes, bucketEvents: 8 });
  const claim = await store.claim(newLedgerId());
  return { count, append: () => store.append(claim, entriesFor(claim, 3)) };
}

test('a written batch that cannot be read back at once is read again', async () => {
  const { count, append } = await readBackBy((read, rows) => {
    if (read <= 2) throw new LedgerError('unavailable', 'injected');
    return rows;
  });
  await append();
  expect(count.reads).toBe(3);
});

test('a written batch that is not there is not read again', async () => {
  const { count, append } = await readBackBy(() => []);
  await expect(append()).rejects.toBeInstanceOf(OutcomeUnknown);
  expect(count.reads).toBe(1);
});
