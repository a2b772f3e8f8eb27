import { deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MessageFraming } from '../../../../src/rpc/grpc/worker/framing.ts';
import { RequestGate } from '../../../../src/rpc/grpc/worker/request-gate.ts';
import { unpack } from '../../../../src/rpc/grpc/worker/unpacking.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { grpcMessage } from '../../../support/attacks/http2-frames.ts';

test('ended messages and the bytes of the unfinished one are counted, however the bytes are cut', () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 });
  const cuts = fc.array(fc.integer({ min: 1, max: 64 }), { minLength: 1 });
  fc.assert(
    fc.property(messages, cuts, fc.nat(4), (bodies, sizes, more) => {
      const bytes = Buffer.concat([...bodies.map((body) => grpcMessage(body)), Buffer.alloc(more)]);
      const framing = new MessageFraming();
      for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        framing.take(bytes.subarray(at, at + size));
        at += size;
      }
      expect([framing.messages, framing.unfinishedBytes]).toEqual([bodies.length, more]);
    }),
    { numRuns: 300 },
  );
});

test.each([
  [0, false, false],
  [1, true, false],
  [2, false, true],
  [0x80, false, true],
  [0xff, false, true],
])('the flag byte %i says compressed: %s, and is unknown: %s', (flag, compressed, unknown) => {
  const framing = new MessageFraming();
  framing.take(grpcMessage(Buffer.alloc(3), flag));
  expect([framing.hasCompressed, framing.hasUnknownFlag]).toEqual([compressed, unknown]);
});

test('a compressed message is unpacked up to its bound', () => {
  const text = Buffer.alloc(1_000, 'x');
  expect(unpack(gzipSync(text), 'gzip', 1_000)).toEqual(text);
  expect(unpack(deflateSync(text), 'deflate', 1_000)).toEqual(text);
  const thrown = (packed: Buffer, encoding: string): unknown => {
    try {
      return unpack(packed, encoding, 999);
    } catch (error) {
      return (error as { code: number }).code;
    }
  };
  expect(thrown(gzipSync(text), 'gzip')).toBe(8);
  expect(thrown(gzipSync(Buffer.alloc(8 * 1024 * 1024)), 'gzip')).toBe(8);
  expect(thrown(text, 'gzip')).toBe(13);
  expect(thrown(text, 'br')).toBe(12);
});

test('the next message of a stream is read when there is room for it by number and by bytes', () => {
  const gate = new RequestGate();
  let reads = 0;
  gate.reader = () => {
    reads += 1;
  };
  gate.want();
  expect(reads).toBe(0);
  gate.allow(2);
  expect(reads).toBe(1);
  gate.read(limits.streamReadAheadBytes);
  gate.want();
  expect(reads).toBe(1);
  gate.allow(0, 1);
  expect(reads).toBe(2);
  gate.want();
  expect(reads).toBe(2);
  gate.open();
  gate.want();
  expect(reads).toBe(4);
});
