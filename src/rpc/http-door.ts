import fastify, { type FastifyInstance } from 'fastify';
import { requestIdOf } from './call/request-id.ts';
import { CONNECT_PREFIX, createConnectDoor } from './connect/door.ts';
import type { HttpDoorParts } from './http/door-parts.ts';
import { createHttpServer, type TlsKeys } from './http/server.ts';
import { addressOf, type ListeningDoor } from './listening.ts';
import { createRestDoor } from './rest/door.ts';

export interface HttpPortParts extends HttpDoorParts {
  readonly tls: TlsKeys | null;
  /** Adds what is no API: documentation, console. */
  readonly pages?: (app: FastifyInstance) => void | Promise<void>;
}

/**
 * The HTTP port: fastify for pages; Connect and gRPC-Web by path; REST for everything else, errors included. API calls are
 * taken before fastify reads anything of them, since the credential comes before the body.
 */
export async function openHttpDoor(parts: HttpPortParts, host: string, port: number): Promise<ListeningDoor> {
  const rest = createRestDoor(parts);
  const connect = createConnectDoor(parts);
  let draining = false;

  const app = fastify({
    logger: false,
    exposeHeadRoutes: true,
    routerOptions: { ignoreTrailingSlash: true },
    serverFactory: (pages) =>
      createHttpServer(
        (request, response) => {
          if (draining) response.shouldKeepAlive = false;
          const url = request.url ?? '';
          if (url.startsWith(CONNECT_PREFIX)) connect(request, response);
          else if (url.startsWith('/v1/')) rest(request, response);
          else pages(request, response);
        },
        parts.tls,
        parts.newId,
      ),
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      rest(request.raw, reply.raw);
    },
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) {
      const sent = request.headers['x-request-id'];
      reply.header('x-request-id', requestIdOf(typeof sent === 'string' ? sent : undefined, parts.newId));
      return done();
    }
    reply.hijack();
    rest(request.raw, reply.raw);
  });
  await parts.pages?.(app);
  await app.listen({ host, port, backlog: 1024 });
  const { server } = app;
  const close = async (graceMs: number): Promise<void> => {
    draining = true;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    await parts.pipeline.running.drained(graceMs);
    server.closeIdleConnections();
    const late = setTimeout(() => server.closeAllConnections(), Math.min(graceMs, 1_000));
    await closed;
    clearTimeout(late);
    await app.close();
  };
  return { ...addressOf(server), close, [Symbol.asyncDispose]: () => close(0) };
}
