import type { CqlSession, Row } from './session/session.ts';
import { TextRoom } from './session/text-room.ts';

const pageRows = 1_000;
/** A page with larger rows ends with the one whose texts reach so many characters. */
const pageCharsMax = 16 * 1024 * 1024;
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
    const room = new TextRoom(null, pageCharsMax);
    const rows = await session.read({ cql, params: [behind, pageRows] }, { room });
    for (const row of rows) {
      if (typeof row.place === 'bigint') behind = row.place;
      yield { row, share: Number(behind - lowestToken) / tokens };
    }
    if (rows.length < pageRows && !room.isFull) return;
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
    const room = new TextRoom(null, pageCharsMax);
    const rows = await session.read({ cql, params: [...key, ...behind, pageRows] }, { room });
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || (rows.length < pageRows && !room.isFull)) return;
    behind = columns.map((column) => last[column]);
  }
}
