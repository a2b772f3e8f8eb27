import type { Row } from '../../src/store/cassandra/session/session.ts';

/** Rows of access blocks whose `first_id` is not before `from`, and before `until`, in their order. */
export function blocksBetween(blocks: readonly Row[], from: string, until: string): Row[] {
  const firstId = (row: Row) => String(row.first_id);
  const within = blocks.filter((row) => firstId(row) >= from && firstId(row) < until);
  return within.sort((left, right) => (firstId(left) < firstId(right) ? -1 : 1));
}

/** What Cassandra's functions say of the `count` of rows. */
export function countsOf(rows: readonly Row[]): Row {
  const counts = rows.flatMap(({ count }) => (typeof count === 'number' ? count : []));
  return {
    events: counts.reduce((sum, count) => sum + count, 0),
    least: counts.length === 0 ? null : Math.min(...counts),
    most: counts.length === 0 ? null : Math.max(...counts),
    counted: BigInt(counts.length),
    blocks: BigInt(rows.length),
  };
}
