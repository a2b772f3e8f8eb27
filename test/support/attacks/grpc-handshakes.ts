import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { GrpcTarget } from './grpc-connections.ts';
import { preface } from './http2-frames.ts';

/** The beginning of a TLS record that promises 4 KiB. */
const hello = Buffer.from([0x16, 3, 1, 16, 0, 1]);
/** None of them comes to an end, of TLS or of HTTP/2. */
const beginnings = [Buffer.alloc(0), hello, preface.subarray(0, 10), preface];
const socketsEach = 50;

/**
 * Connections that begin and do not go on, on 50 sockets each; what the node ends is begun again. Resolves to how many
 * began.
 */
export async function run({ grpc }: GrpcTarget, signal: AbortSignal, connections: number): Promise<number> {
  let begun = 0;
  const [host = '', port = ''] = grpc.split(':');
  const one = async (at: number): Promise<void> => {
    const beginning = beginnings[at % beginnings.length] ?? hello;
    while (!signal.aborted) {
      const socket = connect(Number(port), host, () => {
        begun += 1;
        socket.write(beginning);
      }).on('error', () => {});
      const end = (): void => void socket.destroy();
      signal.addEventListener('abort', end, { once: true });
      socket.resume();
      await once(socket, 'close');
      signal.removeEventListener('abort', end);
      // Without TLS the node ends a hello at once, and this is no flood of connections.
      await delay(250, undefined, { signal }).catch(() => {});
    }
  };
  await Promise.all(Array.from({ length: connections * socketsEach }, (_, at) => one(at)));
  return begun;
}
