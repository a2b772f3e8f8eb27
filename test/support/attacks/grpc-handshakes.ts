import { once } from 'node:events';
import { connect } from 'node:net';
import type { GrpcTarget } from './grpc-connections.ts';

/** The beginning of a TLS record that promises 4 KiB. */
const hello = Buffer.from([0x16, 3, 1, 16, 0, 1]);

/** TLS handshakes that begin and do not go on, on 50 sockets each. */
export async function run({ grpc }: GrpcTarget, signal: AbortSignal, connections: number): Promise<void> {
  const [host = '', port = ''] = grpc.split(':');
  const one = async (): Promise<void> => {
    while (!signal.aborted) {
      const socket = connect(Number(port), host, () => socket.write(hello)).on('error', () => {});
      const end = (): void => void socket.destroy();
      signal.addEventListener('abort', end, { once: true });
      socket.resume();
      await once(socket, 'close');
      signal.removeEventListener('abort', end);
    }
  };
  await Promise.all(Array.from({ length: connections * 50 }, one));
}
