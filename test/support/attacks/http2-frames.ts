/** Frames of HTTP/2 (RFC 9113), written by hand: a library would not send what attackers send. */
export const frameType = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
};
export const endStream = 1;
export const endHeaders = 4;

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** Ids and values of RFC 9113, section 6.5.2, such as 4: the window of each stream. */
export function settings(values: Readonly<Record<number, number>> = {}): Buffer {
  const entries = Object.entries(values).map(([id, value]) => {
    const entry = Buffer.alloc(6);
    entry.writeUInt16BE(Number(id), 0);
    entry.writeUInt32BE(value, 2);
    return entry;
  });
  return frame(frameType.settings, 0, 0, Buffer.concat(entries));
}

export function windowUpdate(streamId: number, bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(frameType.windowUpdate, 0, streamId, payload);
}

/** HPACK's literals without indexing and without Huffman coding (RFC 7541, section 6.2.2). */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const pieces = Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]);
  return Buffer.concat(pieces);
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = [Math.min(bytes.length, 127)];
  if (bytes.length >= 127) {
    let rest = bytes.length - 127;
    for (; rest > 127; rest >>= 7) length.push((rest & 127) | 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** The headers of a gRPC call. */
export function callHeaders(path: string, more: Readonly<Record<string, string>> = {}): Buffer {
  const grpc = { 'content-type': 'application/grpc', te: 'trailers' };
  return headerBlock({ ':method': 'POST', ':scheme': 'http', ':path': path, ':authority': 'a', ...grpc, ...more });
}

/** DATA of at most 16 KiB each, as every receiver takes them. */
export function data(streamId: number, bytes: Uint8Array, isEnd = false): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < bytes.length || frames.length === 0; at += 16_384) {
    const piece = bytes.subarray(at, at + 16_384);
    const isLast = at + 16_384 >= bytes.length;
    frames.push(frame(frameType.data, isLast && isEnd ? endStream : 0, streamId, piece));
  }
  return Buffer.concat(frames);
}

/** A message in gRPC's framing. `length`: what its head says, if not its own length. */
export function grpcMessage(message: Uint8Array, flag = 0, length = message.length): Buffer {
  const head = Buffer.alloc(5);
  head[0] = flag;
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
}
