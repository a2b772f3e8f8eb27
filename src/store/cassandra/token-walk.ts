import type { CqlSession, Row } from './session/session.ts';

const pageRows = 1_000;
/** Of Murmur3. No partition has it. */
const lowestToken = -(2n ** 63n);
const tokens = 2 ** 64;

/**
 * Yields the rows of a query in the order of their tokens, in pages, with the part of the walk that is done. The query
 * must return one row for each partition with its token as `place`, and take a token to go on behind and a limit.
 */
export async function* walkTokens(
  session: CqlSession,
  cql: string,
): AsyncGenerator<{ readonly row: Row; readonly share: number }> {
  for (let behind = lowestToken; ; ) {
    const rows = await session.read({ cql, params: [behind, pageRows] });
    for (const row of rows) {
      if (typeof row.place === 'bigint') behind = row.place;
      yield { row, share: Number(behind - lowestToken) / tokens };
    }
    if (rows.length < pageRows) return;
  }
}

/**
 * Yields the rows of a partition in pages. The query must take the values of the partition key, those of the clustering
 * columns `columns` to go on behind, and a limit. `before`: values of these columns that sort before all rows.
 */
export async function* walkRows(
  session: CqlSession,
  cql: string,
  key: readonly unknown[],
  columns: readonly string[],
  before: readonly unknown[],
): AsyncGenerator<Row> {
  for (let behind = before; ; ) {
    const rows = await session.read({ cql, params: [...key, ...behind, pageRows] });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < pageRows) return;
    behind = columns.map((column) => last[column]);
  }
}
