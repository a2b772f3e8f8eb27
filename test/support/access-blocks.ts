import type { Row, Statement } from '../../src/store/cassandra/session/session.ts';

/** What Cassandra answers to a read of access blocks of one actor, hour and ledger. */
export function blocksFor({ cql, params }: Statement, blocks: readonly Row[]): Row[] {
  const [, , , from, end, limit] = params;
  const firstId = (row: Row) => String(row.first_id);
  const within = blocks.filter((row) => firstId(row) >= String(from) && firstId(row) < String(end));
  within.sort((left, right) => (firstId(left) < firstId(right) ? -1 : 1));
  return (cql.includes('DESC') ? within.reverse() : within).slice(0, Number(limit));
}
