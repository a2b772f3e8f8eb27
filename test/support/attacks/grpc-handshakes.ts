import { keepBegun, tlsHello } from './begun-connections.ts';
import type { GrpcTarget } from './grpc-connections.ts';
import { preface } from './http2-frames.ts';

/** None of them comes to an end, of TLS or of HTTP/2. */
const beginnings = [Buffer.alloc(0), tlsHello, preface.subarray(0, 10), preface];
const socketsEach = 50;

/** Connections that begin and do not go on, on 50 sockets each. Resolves to how many began. */
export function run({ grpc }: GrpcTarget, signal: AbortSignal, connections: number): Promise<number> {
  const [host = '', port = ''] = grpc.split(':');
  const sockets = Array.from({ length: connections * socketsEach }, (_, at) => ({
    host,
    port: Number(port),
    sent: beginnings[at % beginnings.length] ?? tlsHello,
  }));
  return keepBegun(sockets, signal);
}
