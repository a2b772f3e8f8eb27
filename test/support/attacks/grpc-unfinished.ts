import { gzipSync } from 'node:zlib';
import type { AskedCall } from './grpc-answered.ts';
import { type GrpcTarget, onConnections, untilClosed } from './grpc-connections.ts';
import { callHeaders, data, endHeaders, frame, frameType, grpcMessage } from './http2-frames.ts';

const mebibyte = 1024 * 1024;
/** All of a message of 1 MiB but for its last byte. */
const almost = grpcMessage(Buffer.alloc(mebibyte - 1), 0, mebibyte);
const start = almost.subarray(0, 60 * 1024);
/** 1 MiB of zeros in 1 KiB, whole, of a call that does not end. */
const packed = grpcMessage(gzipSync(Buffer.alloc(mebibyte)), 1);

interface Unfinished {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const kinds: readonly Unfinished[] = [
  { path: '/svc.v1.DeveloperService/RegisterDeveloper', headers: {}, body: almost },
  { path: '/svc.v1.MasterService/AppendEvent', headers: {}, body: almost },
  { path: '/svc.v1.DeveloperService/RegisterDeveloper', headers: {}, body: start },
  { path: '/svc.v1.DeveloperService/RegisterDeveloper', headers: { 'grpc-encoding': 'gzip' }, body: packed },
  { path: '/svc.v1.MasterService/AppendEvents', headers: {}, body: start },
  { path: '/svc.v1.HealthService/GetHealth', headers: {}, body: almost },
  { path: '/grpc.health.v1.Health/Check', headers: {}, body: start },
  { path: '/none', headers: {}, body: start },
  { path: '/none', headers: { 'content-type': 'text/plain' }, body: start },
];

const known = [...new Set(kinds.map(({ path }) => path))].filter((path) => path !== '/none');
const empty = grpcMessage(Buffer.alloc(0));
export const askedWith = (credential: Readonly<Record<string, string>>): readonly AskedCall[] =>
  known.map((path) => ({ path, headers: credential, body: empty }));

/**
 * Messages that begin and do not end, of calls of all kinds. `credentials`: headers, of which each connection has one
 * of the list; by default none.
 */
export function run(
  target: GrpcTarget,
  signal: AbortSignal,
  connections: number,
  credentials: readonly Readonly<Record<string, string>>[] = [{}],
): Promise<number> {
  let begun = 0;
  return onConnections(target, signal, connections, async (attacker) => {
    const credential = credentials[begun++ % credentials.length];
    for (let call = 0; call < 900 && !attacker.socket.destroyed; call += 1) {
      const id = attacker.nextStream();
      const { path, headers, body } = kinds[call % kinds.length] ?? { path: '/', headers: {}, body: start };
      await attacker.send(frame(frameType.headers, endHeaders, id, callHeaders(path, { ...headers, ...credential })));
      await attacker.send(data(id, body));
    }
    await Promise.race([untilClosed(attacker), new Promise((resolve) => setTimeout(resolve, 35_000).unref())]);
  });
}
