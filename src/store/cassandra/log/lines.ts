import type { Line, Page } from '../../ledger-store.ts';
import { charsOf } from '../../pages.ts';
import { keyText, readFrom } from '../keys.ts';
import { type CqlSession, textOf } from '../session/session.ts';

/** Lines read by one statement if the page has a limit of characters, because sizes are known only after reading. */
const linesAtOnce = 128;

const UP = 'FROM line WHERE list = ? LIMIT ?';
const UP_FROM = 'FROM line WHERE list = ? AND line_order >= ? LIMIT ?';
const DOWN = 'FROM line WHERE list = ? ORDER BY line_order DESC LIMIT ?';
const DOWN_FROM = 'FROM line WHERE list = ? AND line_order <= ? ORDER BY line_order DESC LIMIT ?';

/** Like LedgerStore.lines. For an offset it reads the orders of skipped lines, not their values. */
export async function readLines(session: CqlSession, list: string, page: Page): Promise<Line[]> {
  const { limit, offset = 0, descending = false } = page;
  if (limit <= 0) return [];
  const read = async (columns: string, from: string | undefined, max: number): Promise<Line[]> => {
    const key = keyText(list);
    const statement =
      from === undefined
        ? { cql: `SELECT ${columns} ${descending ? DOWN : UP}`, params: [key, max] }
        : { cql: `SELECT ${columns} ${descending ? DOWN_FROM : UP_FROM}`, params: [key, readFrom(from), max] };
    const rows = await session.read(statement);
    return rows.map((row) => ({ order: textOf(row, 'line_order') ?? '', value: textOf(row, 'value') ?? '' }));
  };
  let { from } = page;
  if (offset > 0) {
    const first = (await read('line_order', from, offset + 1))[offset];
    if (first === undefined) return [];
    from = first.order;
  }
  if (page.charsMax === undefined) return read('line_order, value', from, limit);
  const lines: Line[] = [];
  for (let chars = 0; lines.length < limit && chars < page.charsMax; ) {
    // From the second part on, the first line read is the last line of the previous part.
    const again = lines.length > 0 ? 1 : 0;
    const most = Math.min(linesAtOnce, limit - lines.length) + again;
    const part = (await read('line_order, value', lines.at(-1)?.order ?? from, most)).slice(again);
    lines.push(...part);
    chars += charsOf(part);
    if (part.length + again < most) break;
  }
  return lines;
}
