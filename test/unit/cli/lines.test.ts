import { describe, expect, it } from 'vitest';
import { linesOf } from '../../../src/cli/terminal/lines.ts';
import { CliError } from '../../../src/cli/terminal/terminal.ts';

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

  it('end at a line feed and at nothing else, wherever the chunks end', async () => {
    const bytes = Buffer.from(`one${unusual}\n${unusual}\r\nfour`);
    const lines = [`one${unusual}`, `${unusual}\r`, 'four'];
    for (let at = 0; at <= bytes.length; at++) {
      expect(await read(bytes.subarray(0, at), bytes.subarray(at))).toEqual(lines);
    }
    expect(await read(...Array.from(bytes, (byte) => Buffer.from([byte])))).toEqual(lines);
  });

  it('need no line feed behind the last line', async () => {
    expect(await read()).toEqual([]);
    expect(await read(Buffer.from('one'))).toEqual(['one']);
    expect(await read(Buffer.from('one\n'))).toEqual(['one']);
  });

  it('of white space are counted and skipped', async () => {
    const bytes = Buffer.from('one\n\n \t\n\r\n \r\ntwo \n\r\r\n\u00a0\n  ');
    const expected = ['1 one', '6 two ', '7 \r\r', '8 \u00a0', '9   '];
    for (let at = 0; at <= bytes.length; at++) {
      const found: string[] = [];
      const pieces = [bytes.subarray(0, at), bytes.subarray(at)];
      for await (const line of linesOf(pieces, 'x.jsonl'))
        if (!/^[ \t]*\r?$/.test(line.bytes.toString()) || line.number === 9) found.push(`${line.number} ${line.bytes}`);
      expect(found).toEqual(expected);
    }
  });

  it('of white space are skipped fast, however many there are', async () => {
    for (const blank of ['\n', ' \t\r\n', `${' '.repeat(50_000)}\n`]) {
      const piece = Buffer.from(blank.repeat(4_000_000 / blank.length));
      const before = process.cpuUsage();
      let count = 0;
      for await (const _ of linesOf([Buffer.from('one\n'), piece, Buffer.from('two')], 'x.jsonl')) count += 1;
      const { user, system } = process.cpuUsage(before);
      expect(count).toBe(2);
      // Handed out one by one, the first would take some 2 s.
      expect((user + system) / 1_000).toBeLessThan(800);
    }
  });

  it('are refused when they are too long', async () => {
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
