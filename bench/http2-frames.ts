/**
 * As much of HTTP/2 (RFC 9113) and HPACK (RFC 7541) as a client needs that sends frames made beforehand. Header blocks
 * use no dynamic table, so that a frame is the same wherever it is sent; only its stream id is put in.
 */
export const frameType = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
} as const;
const flagEndStream = 0x1;
export const flagAck = 0x1;
const flagEndHeaders = 0x4;
export const frameHeadBytes = 9;
/** Where the stream id stands in a frame. */
export const streamIdAt = 5;
export const connectionPreface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
export const settingInitialWindow = 4;

/** A frame of stream 0; a sender on another stream puts the id in. */
export function frame(type: number, flags: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  return Buffer.concat([head, payload]);
}

/** HEADERS of a gRPC call; `headers` are those beside the ones that every call has. */
export function grpcHeaders(path: string, authority: string, headers: readonly (readonly [string, string])[]): Buffer {
  const all = [['content-type', 'application/grpc'], ['te', 'trailers'], ...headers] as const;
  const block = Buffer.concat([
    // :method POST and :scheme http stand in the static table; so do the names of :path (4) and :authority (1).
    Buffer.of(0x83, 0x86, 0x04),
    text(path),
    Buffer.of(0x01),
    text(authority),
    ...all.flatMap(([name, value]) => [Buffer.of(0x00), text(name), text(value)]),
  ]);
  return frame(frameType.headers, flagEndHeaders, block);
}

/** DATA with one gRPC message. */
export function grpcMessage(message: Uint8Array, endStream: boolean): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return frame(frameType.data, endStream ? flagEndStream : 0, Buffer.concat([prefix, message]));
}

/** A string literal without Huffman coding (RFC 7541, section 5.2). */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest > 127; rest >>= 7) length.push((rest & 127) | 128);
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}
