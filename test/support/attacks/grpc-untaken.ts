import type { AskedCall } from './grpc-answered.ts';
import { type GrpcTarget, onConnections, untilClosed } from './grpc-connections.ts';
import { callHeaders, data, endHeaders, frame, frameType, grpcMessage } from './http2-frames.ts';

const empty = grpcMessage(Buffer.alloc(0));
/** A name that health does not know, which its error repeats. */
const name = Buffer.alloc(10_000, 'x');
const unknown = grpcMessage(Buffer.concat([Buffer.from([0x0a, 0x90, 0x4e]), name]));

const calls = [
  { path: '/svc.v1.HealthService/GetHealth', body: empty },
  { path: '/svc.v1.MasterService/AppendEvent', body: empty },
  { path: '/grpc.health.v1.Health/Watch', body: empty },
  { path: '/grpc.health.v1.Health/Check', body: unknown },
  { path: '/none', body: empty },
];
export const asked: readonly AskedCall[] = calls.filter(({ path }) => path !== '/none');

/** Whole calls of which nobody takes the answer: the socket is not read. */
export function run(target: GrpcTarget, signal: AbortSignal, connections: number): Promise<number> {
  return onConnections(
    target,
    signal,
    connections,
    async (attacker) => {
      let isSent = true;
      for (let call = 0; isSent && call < 100_000; call += 1) {
        const id = attacker.nextStream();
        const { path, body } = calls[call % calls.length] ?? { path: '/', body: empty };
        const headers = frame(frameType.headers, endHeaders, id, callHeaders(path));
        isSent = await attacker.send(Buffer.concat([headers, data(id, body, true)]));
      }
      await untilClosed(attacker);
    },
    { isDeaf: true },
  );
}
