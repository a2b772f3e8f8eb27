import { describe, expect, it } from 'vitest';
import { linesOf } from '../../src/cli/lines.ts';
import { CliError } from '../../src/cli/terminal.ts';

async function read(...pieces: readonly Buffer[]): Promise<string[]> {
  const lines: string[] = [];
  for await (const { number, bytes } of linesOf(pieces, 'x.jsonl')) {
    lines.push(bytes.toString());
    expect(number).toBe(lines.length);
  }
  return lines;
}

describe('lines', () => {
  const unusual = '\u2028 \u2029 \u0085 \r \v \f 😀';

  it('end at a line feed and at nothing else, wherever the pieces end', async () => {
    const bytes = Buffer.from(`one${unusual}\n\n${unusual}\r\nfour`);
    const lines = [`one${unusual}`, '', `${unusual}\r`, 'four'];
    for (let at = 0; at <= bytes.length; at++) {
      expect(await read(bytes.subarray(0, at), bytes.subarray(at))).toEqual(lines);
    }
    expect(await read(...Array.from(bytes, (byte) => Buffer.from([byte])))).toEqual(lines);
  });

  it('need no line feed behind the last, and there is none behind one', async () => {
    expect(await read()).toEqual([]);
    expect(await read(Buffer.from('one'))).toEqual(['one']);
    expect(await read(Buffer.from('one\n'))).toEqual(['one']);
  });

  it('that do not end are not kept for ever', async () => {
    let pieces = 0;
    const endless = function* () {
      yield Buffer.from('one\n');
      for (; pieces < 1_000; pieces++) yield Buffer.alloc(64 * 1024, 'x');
    };
    const reading = (async () => {
      for await (const _ of linesOf(endless(), 'x.jsonl'));
    })();
    await expect(reading).rejects.toThrow(new CliError('Line 2 of x.jsonl is too long for one of an export.', 66));
    expect(pieces).toBe(64);
  });
});
