import { inputError } from './terminal.ts';

/**
 * An event of an export is 256 KiB of payload at most, once more as signed, and its fields, six times as long where another program wrote
 * it with escapes; a resolver document is shorter. What is longer is no line of one, and must not fill the memory.
 */
const LINE_MAX_BYTES = 4 * 1024 * 1024;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;

export interface Line {
  /** From 1. */
  readonly number: number;
  readonly bytes: Buffer;
}

/**
 * The lines of a file, `name` in errors, as its bytes come. A line feed alone ends one: JSON may hold every other
 * character that ends lines elsewhere (U+2028, U+2029, U+0085) as it is. `blank` says what becomes of lines of white
 * space: passed over, they are counted and most of them are not handed out, since a file may hold millions.
 */
export async function* linesOf(
  pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
  name: string,
  blank: 'handed out' | 'passed over' = 'handed out',
): AsyncIterable<Line> {
  let number = 1;
  let parts: Buffer[] = [];
  let length = 0;
  for await (const piece of pieces) {
    for (let from = 0; from < piece.length; ) {
      const behind = blank === 'passed over' && length === 0 ? behindBlankLine(piece, from) : from;
      if (behind > from) {
        number += 1;
        from = behind;
        continue;
      }
      const end = piece.indexOf(LINE_FEED, from);
      const part = piece.subarray(from, end === -1 ? piece.length : end);
      parts.push(part);
      length += part.length;
      if (length > LINE_MAX_BYTES) throw inputError(`Line ${number} of ${name} is too long for one of an export.`);
      if (end === -1) break;
      yield { number, bytes: joined(parts) };
      number += 1;
      parts = [];
      length = 0;
      from = end + 1;
    }
  }
  if (length > 0) yield { number, bytes: joined(parts) };
}

/** Where the line that begins at `from` ends, if it is blank and ends in this piece; else `from`. */
function behindBlankLine(piece: Buffer, from: number): number {
  const longest = Math.min(piece.length, from + LINE_MAX_BYTES);
  let at = from;
  while (at < longest && isSpace(piece[at])) at += 1;
  if (at < longest && piece[at] === CARRIAGE_RETURN) at += 1;
  return at < longest && piece[at] === LINE_FEED ? at + 1 : from;
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}

/** Whether a line holds nothing but spaces and tabs. */
export function isBlank(line: Uint8Array): boolean {
  return line.every(isSpace);
}

function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  return first !== undefined && parts.length === 1 ? first : Buffer.concat(parts);
}
