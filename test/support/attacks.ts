import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { grpcMessage } from './attacks/http2-frames.ts';

/** Attacks on the two public ports (`host:port`). Each ends when the service ends it or all is sent. */

function openTo(address: string): Socket {
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
    stream.end(grpcMessage(packed, 1));
    const [found] = await once(stream, 'response');
    return String(found['grpc-status']);
  } finally {
    session.destroy();
  }
}
