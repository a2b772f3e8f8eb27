import type cassandra from 'cassandra-driver';
import type { Row, Statement } from './session.ts';
import type { TextRoom } from './text-room.ts';

interface BoundedPage {
  readonly rows: readonly Row[];
  readonly pageState: string;
}

/** Rows of an attempt after one that has failed, because the answer may have been too large for its time. */
const rowsAfterFailure = 8;

/**
 * Returns a function that reads a page of an answer, without the rows for which `room` has no place. Call it again if
 * it has failed. The driver limits the time to the first row; `answerMaxMs` limits that to the last one. The driver
 * passes each row on as soon as it has arrived, so it holds a part of one row for each connection. By `execute` it
 * would hold the bytes of the whole page.
 */
export function boundedPage(
  client: Pick<cassandra.Client, 'eachRow'>,
  { cql, params }: Statement,
  options: cassandra.QueryOptions,
  room: TextRoom,
  answerMaxMs: number,
): () => Promise<BoundedPage> {
  let latest: Row[] = [];
  let asked = options;
  return () => {
    room.giveBack(latest);
    // The driver keeps the callback of an attempt that has failed until its answer ends.
    latest.length = 0;
    const page = asked;
    asked = { ...options, fetchSize: rowsAfterFailure };
    const rows: Row[] = [];
    latest = rows;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        reject(new Error('Cassandra did not end an answer in time.'));
      }, answerMaxMs);
      const end = (pageState: string): void => {
        clearTimeout(late);
        resolve({ rows, pageState });
      };
      // Rows of an attempt that took too long may arrive during the next one.
      const take = (_: number, row: Row): void => {
        if (rows !== latest || !room.takes(row)) return;
        rows.push(row);
        // Nobody needs the rest.
        if (room.isFull) end('');
      };
      client.eachRow(cql, [...params], page, take, (error, result) => {
        clearTimeout(late);
        if (error) reject(error);
        else end(result.pageState);
      });
    });
  };
}
