import type { Line, Page } from '../../ledger-store.ts';
import { charsOf } from '../../pages.ts';
import { keyText, readFrom } from '../keys.ts';
import { type CqlSession, textOf } from '../session/session.ts';
import { TextRoom } from '../session/text-room.ts';

/** Lines read by one statement if the page has a limit of characters: those beyond it are dropped as they arrive. */
const linesAtOnce = 128;

const UP = 'FROM line WHERE list = ? LIMIT ?';
const UP_FROM = 'FROM line WHERE list = ? AND line_order >= ? LIMIT ?';
const DOWN = 'FROM line WHERE list = ? ORDER BY line_order DESC LIMIT ?';
const DOWN_FROM = 'FROM line WHERE list = ? AND line_order <= ? ORDER BY line_order DESC LIMIT ?';

/** Like LedgerStore.lines. For an offset it reads the orders of skipped lines, not their values. */
export async function readLines(session: CqlSession, list: string, page: Page): Promise<Line[]> {
  const { limit, offset = 0, descending = false } = page;
  if (limit <= 0) return [];
  const read = async (columns: string, from: string | undefined, max: number, room?: TextRoom): Promise<Line[]> => {
    const key = keyText(list);
    const statement =
      from === undefined
        ? { cql: `SELECT ${columns} ${descending ? DOWN : UP}`, params: [key, max] }
        : { cql: `SELECT ${columns} ${descending ? DOWN_FROM : UP_FROM}`, params: [key, readFrom(from), max] };
    const rows = await session.read(statement, room === undefined ? {} : { room });
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
    const again = lines.slice(-1);
    const most = Math.min(linesAtOnce, limit - lines.length) + again.length;
    const room = new TextRoom('value', page.charsMax - chars + charsOf(again));
    const found = await read('line_order, value', again[0]?.order ?? from, most, room);
    // The repeated line may have been repaired, and be longer now.
    lines.splice(lines.length - again.length, again.length, ...found);
    chars += charsOf(found) - charsOf(again);
    if (found.length < most && !room.isFull) break;
  }
  return lines;
}
