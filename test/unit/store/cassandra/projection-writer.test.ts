import { expect, test } from 'vitest';
import { projectionWriter } from '../../../../src/store/cassandra/log/projection-writer.ts';
import type { CqlSession } from '../../../../src/store/cassandra/session/session.ts';
import { faultySession } from '../../../support/cassandra-faults.ts';

/** A bucket that holds `rows` of a scope by seq. Of rows that are inserted together all or none are stored. */
function newWriter(rows: Map<number, string>) {
  const session: CqlSession = {
    read: async ({ cql }) => (cql.startsWith('SELECT row') ? [...rows.values()].map((row) => ({ row })) : []),
    write: async () => {},
    async decide(statements) {
      const listed = statements.map(({ params }) => [Number(params[3]), String(params[4])] as const);
      const applied = listed.every(([seq]) => !rows.has(seq));
      if (applied) for (const [seq, row] of listed) rows.set(seq, row);
      return { applied, row: {} };
    },
  };
  const faults = faultySession();
  const writer = projectionWriter({ session: faults.around(session), bucketEvents: 1_024, now: () => 0 });
  const events = (count: number) =>
    Array.from({ length: count }, (_, seq) => ({ seq, projections: [{ kind: 'scope', scope: 's' } as const] }));
  return { faults, write: (count: number) => writer.write('ledger', events(count)) };
}
const inOrder = (rows: ReadonlyMap<number, string>) => [...rows].sort(([one], [other]) => one - other);

test('a changed row is not overwritten and stops no other row', async () => {
  const rows = new Map([[2, '1000']]);
  await newWriter(rows).write(70);
  const expected = Array.from({ length: 70 }, (_, seq) => [seq, seq === 2 ? '1000' : String(seq)]);
  expect(inOrder(rows)).toEqual(expected);
});

test.each(['lost', 'applied'] as const)(
  'a write with an unknown outcome (%s) is unavailable, and a repetition completes it',
  async (fault) => {
    const rows = new Map<number, string>();
    const { faults, write } = newWriter(rows);
    faults.failDecisions(fault);
    await expect(write(3)).rejects.toMatchObject({ code: 'unavailable' });
    await write(3);
    expect(inOrder(rows)).toEqual([
      [0, '0'],
      [1, '1'],
      [2, '2'],
    ]);
  },
);
