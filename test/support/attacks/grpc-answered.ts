import { connect, type IncomingHttpHeaders } from 'node:http2';
import type { GrpcTarget } from './grpc-connections.ts';

export interface AskedCall {
  readonly path: string;
  /** One message in gRPC's framing. */
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** What the answers have at least; without it an error is an answer too. */
  readonly minBytes?: number;
}

const unimplemented = 12;
const unauthenticated = 16;
const answeredMaxMs = 10_000;

/**
 * Throws for a call that the port does not know, or whose credential it does not: attacks that take no answer cannot
 * see that.
 */
export async function expectAnswered({ grpc, tls }: GrpcTarget, calls: readonly AskedCall[]): Promise<void> {
  const session = connect(`${tls === true ? 'https' : 'http'}://${grpc}`, { rejectUnauthorized: false });
  session.on('error', () => {});
  try {
    for (const { path, body, headers = {}, minBytes = 0 } of calls) {
      const grpcHeaders = { 'content-type': 'application/grpc', te: 'trailers' };
      const stream = session.request({ ':method': 'POST', ':path': path, ...grpcHeaders, ...headers });
      let bytes = 0;
      const status = await new Promise<number | null>((resolve) => {
        const look = (found: IncomingHttpHeaders): void => {
          if (found['grpc-status'] !== undefined) resolve(Number(found['grpc-status']));
        };
        stream
          .on('response', look)
          .on('trailers', look)
          .on('data', (piece: Buffer) => {
            bytes += piece.length;
            // A stream of answers may have no end.
            if (bytes >= minBytes) resolve(0);
          })
          .on('error', () => {})
          .on('close', () => resolve(null))
          .setTimeout(answeredMaxMs, () => stream.close());
        stream.end(body);
      });
      stream.close();
      const isRefused =
        status === null ||
        status === unimplemented ||
        (status === unauthenticated && headers.authorization !== undefined) ||
        bytes < minBytes;
      if (isRefused) throw new Error(`${path} was answered with status ${status} and ${bytes} bytes`);
    }
  } finally {
    session.destroy();
  }
}
