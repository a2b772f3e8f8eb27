import { inputError } from './terminal.ts';

/**
 * An event of an export is 256 KiB of payload at most, once more as signed, and its fields, six times as long where another program wrote
 * it with escapes; a resolver document is shorter. What is longer is no line of one, and must not fill the memory.
 */
const LINE_MAX_BYTES = 4 * 1024 * 1024;
const LINE_FEED = 0x0a;

export interface Line {
  /** From 1. */
  readonly number: number;
  readonly bytes: Buffer;
}

/**
 * The lines of a file, `name` in errors, as its bytes come. A line feed alone ends one: JSON may hold every other character that ends lines
 * elsewhere (U+2028, U+2029, U+0085) as it is.
 */
export async function* linesOf(pieces: AsyncIterable<Buffer> | Iterable<Buffer>, name: string): AsyncIterable<Line> {
  let number = 1;
  let parts: Buffer[] = [];
  let length = 0;
  for await (const piece of pieces) {
    for (let from = 0; from < piece.length; ) {
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

function joined(parts: readonly Buffer[]): Buffer {
  const [first] = parts;
  return first !== undefined && parts.length === 1 ? first : Buffer.concat(parts);
}
