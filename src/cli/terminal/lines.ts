import { inputError } from './terminal.ts';

/**
 * Bytes. An event of an export has up to 256 KiB of payload, the same again as signed payload, and its fields; six
 * times as much if another program wrote it with escapes. A longer line must not fill the memory.
 */
const LINE_MAX_BYTES = 4 * 1024 * 1024;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;

export interface Line {
  /** Counts from 1. */
  readonly number: number;
  readonly bytes: Buffer;
}

/**
 * Yields the lines of a file as its bytes arrive. `name` names the file in errors. Only a line feed ends a line,
 * because JSON may hold every other character that ends lines elsewhere (U+2028, U+2029, U+0085). Most lines of white
 * space are counted and not yielded, since a file may hold millions. Throws CliError (exit code 66) for a line that is
 * too long.
 */
export async function* linesOf(pieces: AsyncIterable<Buffer> | Iterable<Buffer>, name: string): AsyncIterable<Line> {
  let number = 1;
  let parts: Buffer[] = [];
  let length = 0;
  for await (const piece of pieces) {
    for (let from = 0; from < piece.length; ) {
      const behind = length === 0 ? behindBlankLine(piece, from) : from;
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

/** The offset after the line that begins at `from`, if the line is blank and ends in this piece; else `from`. */
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

/** Whether a line holds only spaces and tabs. */
export function isBlank(line: Uint8Array): boolean {
  return line.every(isSpace);
}

function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  return first !== undefined && parts.length === 1 ? first : Buffer.concat(parts);
}
