import { type GrpcListener, openGrpcListener } from '../../rpc/grpc/main/listener.ts';
import { canKeepSessions } from '../../rpc/grpc/session-memory.ts';
import { corsFor } from '../../rpc/http/cors.ts';
import type { TlsKeys } from '../../rpc/http/server.ts';
import { openHttpListener } from '../../rpc/http-listener.ts';
import type { Listener } from '../../rpc/listening.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { listen } from '../listeners.ts';
import { pages } from '../pages.ts';
import type { NodeCalls } from './calls.ts';
import type { NodeContext } from './context.ts';

export interface PublicPorts extends AsyncDisposable {
  readonly http: Listener;
  readonly grpc: GrpcListener;
}

/** They close together, and running calls get stopGraceMs. */
export async function openPublicPorts(node: NodeContext, calls: NodeCalls, tls: TlsKeys | null): Promise<PublicPorts> {
  const { config, production, memory, log, now, monotonicMs } = node;
  const { host, port, grpcPort, connectionsMax } = config;
  const open = <T extends Listener>(portVariable: string, number: number, opening: Promise<T>): Promise<T> =>
    listen({ portVariable, port: number, hostVariable: 'HOST', host }, opening);

  if (!canKeepSessions()) log.warn({ node: process.version }, unprotected);
  await using opened = new AsyncDisposableStack();
  const grpcParts = { ...calls, tls, bounds: config.grpcBounds, connectionsMax, memory, now };
  const grpc = opened.use(await open('GRPC_PORT', grpcPort, openGrpcListener(grpcParts, host, grpcPort)));
  const cors = corsFor(config.corsOrigins);
  const tlsOnly = tls !== null || (production && config.tlsTerminated);
  const httpParts = { ...calls, cors, tls, tlsOnly, connectionsMax, memory, monotonicMs, pages };
  const http = opened.use(await open('PORT', port, openHttpListener(httpParts, host, port)));
  opened.move();
  return {
    http,
    grpc,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([http.close(limits.stopGraceMs), grpc.close(limits.stopGraceMs)]);
    },
  };
}

const unprotected =
  'any client may end this process by HTTP/2 headers that do not end: the protection does not know this version of Node. Run the newest one that starts without this warning, such as 24.21';
