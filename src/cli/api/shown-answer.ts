import { answerToJson } from '../../client/call/answer-encoding.ts';
import type { LedgerTrustClient } from '../../client/client.ts';
import type { UnaryMethods } from '../../client/methods.ts';
import type { services } from '../../client/services.ts';
import { shownJson, shownText } from '../terminal/shown-text.ts';

type MethodName = keyof UnaryMethods<typeof services>;
type AnswerTo<M extends MethodName> = Awaited<ReturnType<LedgerTrustClient[M]>>;
type Cell = string | number | boolean | null | undefined;

export interface Shown {
  /** What `--json` prints. */
  readonly json: unknown;
  /** What `--quiet` prints, a line each. */
  readonly ids: readonly string[];
  /** Lines for people. */
  readonly lines: readonly string[];
}

/** Shows an answer of the API. Its JSON is that of REST; `{}` for a method that answers nothing. */
export function answered<M extends MethodName>(
  method: M,
  answer: AnswerTo<M>,
  ids: readonly string[],
  lines: readonly string[],
): Shown {
  return { json: answer === undefined ? {} : answerToJson(method, answer), ids, lines };
}

const NOTHING = '-';
const GAP = '  ';

const textOf = (cell: Cell): string => (cell == null || cell === '' ? NOTHING : shownText(String(cell)));

/** One line a name. Names whose value is undefined are left out. */
export function recordLines(values: { readonly [name: string]: Cell }): string[] {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  const width = Math.max(...given.map(([name]) => name.length));
  return given.map(([name, value]) => `${name.padEnd(width)}${GAP}${textOf(value)}`);
}

/**
 * A heading and a line a row. The last column is not padded: put free text there, whose width on the screen is not its
 * number of characters.
 */
export function tableLines(columns: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const cells = [columns.map((column) => column.toUpperCase()), ...rows.map((row) => row.map(textOf))];
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  const isLast = (at: number) => at === columns.length - 1;
  return cells.map((row) => row.map((cell, at) => (isLast(at) ? cell : cell.padEnd(widths[at] ?? 0))).join(GAP));
}

/** A line that says how to go on; none at the end of a list. */
export function cursorLines(nextCursor: string | null): string[] {
  return nextCursor === null ? [] : [shownText(`More may follow: --cursor ${nextCursor}`)];
}

export function textOfAnswer(shown: Shown, options: { readonly json?: boolean; readonly quiet?: boolean }): string {
  if (options.json) return `${shownJson(JSON.stringify(shown.json, null, 2))}\n`;
  const lines = options.quiet ? shown.ids.map(shownText) : shown.lines;
  return lines.map((line) => `${line}\n`).join('');
}
