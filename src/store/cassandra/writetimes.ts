import { bigintOf, type Row } from './session/session.ts';

/** Milliseconds. The clocks of nodes differ by less. */
export const clockSkewMs = 5 * 60_000;

/** For a query: the times of these columns, each under its own name. */
export function timesOf(columns: readonly string[]): string {
  return columns.map((column) => `writetime(${column})`).join(', ');
}

/**
 * Says in words which cells of a row have a time that the service has not given: another one than `exact`, or, if that
 * is null, one that is ahead. What is written later may not replace them. Returns null if there are none.
 */
export function wrongTimes(row: Row, columns: readonly string[], nowMs: number, exact: bigint | null): string | null {
  const newest = BigInt(Math.floor(nowMs) + clockSkewMs) * 1_000n;
  const wrong = columns.flatMap((column) => {
    const written = bigintOf(row, `writetime(${column})`);
    const isWrong = written !== null && (exact === null ? written > newest : written !== exact);
    return isWrong ? [`${column} at ${written}`] : [];
  });
  if (wrong.length === 0) return null;
  const right = exact === null ? 'which is ahead' : `and the service dates it ${exact}`;
  return `Cassandra has ${wrong.join(', ')}, ${right}: what is written later may not be kept`;
}

/** The time that the service gives to the cells of a table by their place. null: it gives them the present time. */
export function exactTime(table: string, row: Row): bigint | null {
  if (table === 'ledger') return bigintOf(row, 'bucket');
  const seq = table === 'cell' ? bigintOf(row, 'version') : table === 'snapshot' ? bigintOf(row, 'seq') : null;
  return seq === null ? null : seq + 1n;
}
