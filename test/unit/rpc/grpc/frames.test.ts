import { describe, expect, test } from 'vitest';
import { FrameReader, FrameWriter, workerCommand, workerEvent } from '../../../../src/rpc/grpc/frames.ts';

/** A writer, and what it has posted. */
function opened() {
  const posted: Uint8Array<ArrayBuffer>[] = [];
  return { writer: new FrameWriter((frames) => void posted.push(frames)), posted };
}

/** Transfers the memory, as between threads. */
function read(frames: Uint8Array<ArrayBuffer> | undefined): FrameReader {
  if (frames === undefined) throw new Error('nothing was posted');
  return new FrameReader(structuredClone(frames, { transfer: [frames.buffer] }));
}

describe('frames between threads', () => {
  test('are read as they were written, in order', () => {
    const { writer, posted } = opened();
    const texts = ['127.0.0.1:1', 'authorization', 'Bearer é', 'empty', ''];
    writer.frame(workerEvent.begun, 7).u32(3).f64(Number.POSITIVE_INFINITY).texts(texts).bytes(Buffer.from('ab'));
    writer.frame(workerCommand.fail, 0xffff_ffff).u8(255).texts([]).bytes(Buffer.alloc(0));
    writer.flush();
    expect(posted.length).toBe(1);
    const reader = read(posted[0]);
    expect([reader.u8(), reader.u32(), reader.u32(), reader.f64()]).toEqual([
      workerEvent.begun,
      7,
      3,
      Number.POSITIVE_INFINITY,
    ]);
    expect(reader.texts()).toEqual(texts);
    expect(reader.bytes().toString()).toBe('ab');
    expect(reader.isEmpty).toBe(false);
    expect([reader.u8(), reader.u32(), reader.u8()]).toEqual([workerCommand.fail, 0xffff_ffff, 255]);
    expect([reader.texts(), reader.bytes().length, reader.isEmpty]).toEqual([[], 0, true]);
  });

  test('of one iteration are posted together after it, and those of the next one by themselves', async () => {
    const { writer, posted } = opened();
    writer.frame(workerCommand.end, 1);
    writer.frame(workerCommand.end, 2);
    expect(posted).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    writer.frame(workerCommand.end, 3);
    await new Promise((resolve) => setImmediate(resolve));
    expect(posted.map((frames) => frames.length)).toEqual([10, 5]);
    writer.flush();
    expect(posted.length).toBe(2);
  });

  test('of a busy iteration are posted in messages of 100, each with its count', async () => {
    const counts: number[] = [];
    const writer = new FrameWriter((_, count) => void counts.push(count));
    for (let call = 0; call < 250; call++) writer.frame(workerCommand.end, call);
    expect(counts).toEqual([100, 100]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(counts).toEqual([100, 100, 50]);
  });

  test.each([1, 4_000, 100_000, 3_000_000])('hold %d bytes, and then small messages', (length) => {
    const { writer, posted } = opened();
    const large = Buffer.alloc(length, 'x');
    for (let call = 0; call < 3; call++) writer.frame(workerCommand.send, call).bytes(large);
    writer.flush();
    writer.frame(workerCommand.send, 3).bytes(Buffer.from('small'));
    writer.flush();
    const reader = new FrameReader(Buffer.concat(posted));
    for (let call = 0; call < 3; call++) {
      expect([reader.u8(), reader.u32()]).toEqual([workerCommand.send, call]);
      expect(reader.bytes().equals(large)).toBe(true);
    }
    expect([reader.u8(), reader.u32(), reader.bytes().toString()]).toEqual([workerCommand.send, 3, 'small']);
    expect(reader.isEmpty).toBe(true);
  });

  test('begin a new message once the one before has 256 KiB', () => {
    const { writer, posted } = opened();
    for (let call = 0; call < 6; call++) writer.frame(workerCommand.send, call).bytes(Buffer.alloc(100_000));
    writer.flush();
    expect(posted.map(({ length }) => length)).toEqual([300_027, 300_027]);
  });
});
