import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { LineWriter } from '../../../src/runtime/telemetry/line-writer.ts';

/** A writer into memory that takes a chunk when told to. */
function writerOf(maxBytes: number) {
  const chunks: string[] = [];
  let under: ((error: Error | null) => void) | null = null;
  const writer = new LineWriter(
    (chunk, done) => {
      chunks.push(chunk.toString());
      under = done;
    },
    maxBytes,
    (error) => error.message === 'EPIPE',
  );
  const told: number[] = [];
  writer.tellDropped = (lines) => {
    told.push(lines);
    writer.write(`dropped ${lines}\n`);
  };
  const end = (error: Error | null = null) => {
    const done = under;
    under = null;
    done?.(error);
  };
  return { writer, chunks, told, end, isWriting: () => under !== null };
}

const line = (n: number) => `${n} ${'x'.repeat(98)}\n`;

describe('a writer of lines', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('drops lines beyond its bound, and reports their number when lines are written again', async () => {
    const { writer, chunks, told, end, isWriting } = writerOf(10_000);
    for (let n = 0; n < 100_000; n++) writer.write(line(n));
    const held = 100_000 - writer.dropped;
    expect(chunks.length).toBe(1);
    expect(held * line(0).length).toBeLessThan(20_000);
    while (isWriting()) {
      end();
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(told).toEqual([100_000 - held]);
    const written = chunks
      .join('')
      .split('\n')
      .filter((one) => one !== '');
    expect(written.length).toBe(held + 1);
    expect(written.at(-1)).toBe(`dropped ${100_000 - held}`);
  });

  test('drops the lines of a failed write, continues after a second, and reports them', async () => {
    const { writer, chunks, told, end } = writerOf(10_000);
    writer.write('first\n');
    await vi.advanceTimersByTimeAsync(50);
    end(new Error('ENOSPC'));
    writer.write('second\n');
    await vi.advanceTimersByTimeAsync(999);
    expect(chunks).toEqual(['first\n']);
    await vi.advanceTimersByTimeAsync(1);
    expect(chunks).toEqual(['first\n', 'second\n']);
    end();
    expect([told, writer.dropped]).toEqual([[1], 1]);
  });

  test('drops everything without a reader, and ends at once', async () => {
    const { writer, chunks, end } = writerOf(10_000);
    for (let n = 0; n < 60; n++) writer.write(line(n));
    end(new Error('EPIPE'));
    writer.write('later\n');
    await vi.advanceTimersByTimeAsync(5_000);
    expect([chunks.length, writer.dropped]).toEqual([1, 61]);
    await writer.end(1_000);
  });

  test('ends when all is written or its time is over', async () => {
    const { writer, chunks, end } = writerOf(100_000);
    writer.write('one\n');
    const ended = writer.end(1_000);
    expect(chunks).toEqual(['one\n']);
    end();
    await ended;
    writer.write('nobody reads this\n');
    let isOver = false;
    void writer.end(1_000).then(() => {
      isOver = true;
    });
    await vi.advanceTimersByTimeAsync(999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(isOver).toBe(true);
  });

  test('returns the waiting lines to an ending process, unless a chunk is being written', async () => {
    const { writer, end } = writerOf(10_000);
    writer.write('one\n');
    await vi.advanceTimersByTimeAsync(50);
    writer.write('two\n');
    expect(writer.takeRest()).toBeNull();
    end();
    expect(writer.takeRest()?.toString()).toBe('two\n');
    expect(writer.takeRest()).toBeNull();
  });
});
