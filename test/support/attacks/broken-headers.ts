import { endHeaders, frame, frameType, headerBlock } from './http2-frames.ts';

const field = { 'x-t': 'z'.repeat(300) };

/** A second block of headers of stream 1. It does not end the stream; the block itself ends if `flags` say so. */
export function secondHeaders(flags: number): Buffer {
  return frame(frameType.headers, flags, 1, headerBlock(field));
}

/** Headers of stream 1 that HTTP/2 refuses, a reset of the stream, and the end of the connection without an error. */
export function refusedHeaders(headers: Buffer): Buffer {
  return Buffer.concat([
    frame(frameType.headers, endHeaders, 1, Buffer.concat([headers, headerBlock({ ...field, ':path': '/' })])),
    frame(frameType.rstStream, 0, 1, Buffer.from([0, 0, 0, 8])),
    frame(frameType.goaway, 0, 0, Buffer.alloc(8)),
  ]);
}
