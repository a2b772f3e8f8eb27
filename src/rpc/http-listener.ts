import { asLedgerError, LedgerError } from '../domain/errors.ts';
import { limits } from '../runtime/limits/limits.ts';
import { createConnectHandler } from './connect/handler.ts';
import { HttpConnections } from './http/connections.ts';
import type { HttpHandlerParts } from './http/handler-parts.ts';
import { createPageHandler, type Pages } from './http/pages.ts';
import { checkHead, createHttpServer, type HttpRequests, type TlsKeys } from './http/server.ts';
import { refuseRequest, transportOf } from './http/unrouted-request.ts';
import { acceptWaiting, addressOf, type Listener, listenOn } from './listening.ts';
import { createRestHandler } from './rest/handler.ts';

export interface HttpPortParts extends HttpHandlerParts {
  readonly tls: TlsKeys | null;
  /** Whether browsers are told that this host speaks TLS only (RFC 6797). */
  readonly tlsOnly: boolean;
  readonly connectionsMax: number;
  monotonicMs(): number;
  readonly pages: Pages;
}

const HSTS = ['strict-transport-security', `max-age=${limits.hstsMaxAgeS}`];

/**
 * Opens the HTTP port. Connect, gRPC-Web and pages are served by path, and everything else by REST, errors included.
 */
export async function openHttpListener(parts: HttpPortParts, host: string, port: number): Promise<Listener> {
  const rest = createRestHandler(parts);
  const connect = createConnectHandler(parts);
  const page = createPageHandler(parts, parts.pages, rest);
  const handlers = { rest, connect, http: page };
  const connections = new HttpConnections(
    parts.memory,
    parts.tlsOnly ? HSTS : [],
    parts.connectionsMax,
    parts.monotonicMs,
  );
  const requests: HttpRequests = {
    serve(request, response) {
      try {
        const fault = checkHead(request);
        if (fault !== null) throw fault;
        handlers[transportOf(request.url ?? '')](request, response);
      } catch (error) {
        // An exception that nobody catches ends the node.
        if (response.headersSent) response.destroy();
        else refuseRequest(parts, request, response, asLedgerError(error));
      }
    },
    refuseExpect(request, response) {
      const error = new LedgerError('invalid_argument', 'The only Expect is 100-continue.', { header: 'Expect' });
      refuseRequest(parts, request, response, error, ['connection', 'close'], 417);
    },
    refused(verb, status, code, requestId) {
      parts.answers.unrouted({ transport: 'http', verb, route: 'none', status, code, requestId, ms: 0 });
    },
  };
  const server = createHttpServer(requests, parts.tls, parts.newId, connections);
  await listenOn(server, host, port);
  const close = async (graceMs: number): Promise<void> => {
    await acceptWaiting(server, graceMs);
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await Promise.all([parts.pipeline.running.drained(graceMs), connections.drain(graceMs)]);
    await closed;
    connections[Symbol.dispose]();
  };
  return { ...addressOf(server), close, [Symbol.asyncDispose]: () => close(0) };
}
