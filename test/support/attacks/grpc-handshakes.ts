import { keepBegun } from './begun-connections.ts';
import type { GrpcTarget } from './grpc-connections.ts';
import { preface } from './http2-frames.ts';

/** The beginning of a TLS record that promises 4 KiB. */
const hello = Buffer.from([0x16, 3, 1, 16, 0, 1]);
/** None of them comes to an end, of TLS or of HTTP/2. */
const beginnings = [Buffer.alloc(0), hello, preface.subarray(0, 10), preface];
const socketsEach = 50;

/** Connections that begin and do not go on, on 50 sockets each. Resolves to how many began. */
export function run({ grpc }: GrpcTarget, signal: AbortSignal, connections: number): Promise<number> {
  const [host = '', port = ''] = grpc.split(':');
  const sockets = Array.from({ length: connections * socketsEach }, (_, at) => ({
    host,
    port: Number(port),
    sent: beginnings[at % beginnings.length] ?? hello,
  }));
  return keepBegun(sockets, signal);
}
