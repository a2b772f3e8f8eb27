import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { LedgerError } from '../domain/errors.ts';
import { limits } from '../runtime/limits/limits.ts';
import type { MemoryBudget } from '../runtime/limits/memory-budget.ts';
import { requestIdOf } from './call/request-id.ts';
import { statusOf } from './call/status.ts';
import { createConnectHandler } from './connect/handler.ts';
import { HttpConnections } from './http/connections.ts';
import { errorEnvelope } from './http/error-envelope.ts';
import type { HttpHandlerParts } from './http/handler-parts.ts';
import type { HttpHandler, HttpResponse } from './http/response.ts';
import {
  checkHead,
  createHttpServer,
  type HttpRequests,
  identifyAnswer,
  JSON_TYPE,
  type TlsKeys,
} from './http/server.ts';
import { answerOptions, refuseMethod, refuseRequest, transportOf } from './http/unrouted-request.ts';
import { addressOf, type Listener } from './listening.ts';
import { createRestHandler } from './rest/handler.ts';

export interface HttpPortParts extends HttpHandlerParts {
  readonly tls: TlsKeys | null;
  /** Whether browsers are told that this host speaks TLS only (RFC 6797). */
  readonly tlsOnly: boolean;
  readonly memory: MemoryBudget;
  /** Milliseconds of a monotonic clock. */
  monotonicMs(): number;
  /** Adds pages beside the API: documentation, console. */
  readonly pages?: (app: FastifyInstance) => void | Promise<void>;
}

/**
 * Opens the HTTP port. Connect and gRPC-Web are served by path, pages by fastify, and everything else by REST, errors
 * included. API calls bypass fastify, because the credential is checked before the body is read.
 */
export async function openHttpListener(parts: HttpPortParts, host: string, port: number): Promise<Listener> {
  const rest = createRestHandler(parts);
  const connect = createConnectHandler(parts);
  const connections = new HttpConnections(parts.memory, parts.tlsOnly ? HSTS : [], parts.monotonicMs);

  let servePage: HttpHandler = () => {};
  const requests: HttpRequests = {
    serve(request, response) {
      const target = request.url ?? '';
      const transport = transportOf(target);
      if (transport === 'connect') connect(request, response);
      // A page has a path. fastify would take the target `*` for one.
      else if (transport === 'rest' || !target.startsWith('/')) rest(request, response);
      else servePage(request, response);
    },
    refuseExpect(request, response) {
      const error = new LedgerError('invalid_argument', 'The only Expect is 100-continue.', { header: 'Expect' });
      refuseRequest(parts, request, response, error, ['connection', 'close'], 417);
    },
    refused(verb, status, code, requestId) {
      parts.answers.unrouted({ transport: 'http', verb, route: 'none', status, code, requestId, ms: 0 });
    },
  };

  const app = fastify({
    logger: false,
    exposeHeadRoutes: true,
    routerOptions: { ignoreTrailingSlash: true },
    serverFactory(pages) {
      servePage = pages;
      return createHttpServer(requests, parts.tls, parts.newId, connections);
    },
    // createHttpServer answers requests that are not HTTP.
    clientErrorHandler: () => {},
    frameworkErrors: (_error, request, reply) => {
      reply.hijack();
      rest(request.raw, reply.raw as HttpResponse);
    },
  });
  const pagePaths = new Set<string>();
  const causes: PageCauses = new WeakMap();
  app.addHook('onRoute', ({ url }) => void pagePaths.add(url));
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404 && checkHead(request.raw) === null) {
      beginPage(parts, request, reply, causes);
      return done();
    }
    reply.hijack();
    const isPage = pagePaths.has(pageOf(request.raw.url ?? ''));
    if (!isPage || checkHead(request.raw) !== null) rest(request.raw, reply.raw as HttpResponse);
    else if (request.method === 'OPTIONS') answerOptions(parts, request.raw, reply.raw, PAGE_METHODS);
    else refuseMethod(parts, request.raw, reply.raw, PAGE_METHODS);
  });
  app.setErrorHandler((cause, _request, reply) => {
    causes.set(reply, cause);
    const error = new LedgerError('internal', 'The page cannot be shown.');
    const body = errorEnvelope(error, String(reply.getHeader('x-request-id')));
    return reply.code(statusOf(error.code).http).header('content-type', JSON_TYPE).send(body);
  });
  await parts.pages?.(app);
  await app.listen({ host, port, backlog: 1024 });
  const { server } = app;
  const close = async (graceMs: number): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    await Promise.all([parts.pipeline.running.drained(graceMs), connections.drain(graceMs)]);
    await closed;
    await app.close();
    connections[Symbol.dispose]();
  };
  return { ...addressOf(server), close, [Symbol.asyncDispose]: () => close(0) };
}

const HSTS = ['strict-transport-security', `max-age=${limits.hstsMaxAgeS}`];

/** Pages are only read. */
const PAGE_METHODS = ['GET', 'HEAD'];

/**
 * Returns the path of a target without its query and without a trailing slash. Pages are found with and without one.
 */
function pageOf(target: string): string {
  const [path = ''] = target.split('?', 1);
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** Why a page failed, by its reply. */
type PageCauses = WeakMap<FastifyReply, unknown>;

/** Gives a page its request id, and logs and counts it once it is answered. */
function beginPage(
  parts: HttpHandlerParts,
  { headers, routeOptions, method }: FastifyRequest,
  reply: FastifyReply,
  causes: PageCauses,
): void {
  const startedMs = performance.now();
  const sent = headers['x-request-id'];
  const requestId = requestIdOf(typeof sent === 'string' ? sent : undefined, parts.newId);
  reply.header('x-request-id', requestId);
  identifyAnswer(reply.raw, requestId);
  reply.raw.once('close', () => {
    const status = reply.statusCode;
    const ms = performance.now() - startedMs;
    const code = status < 500 ? null : 'internal';
    parts.answers.unrouted({
      transport: 'page',
      verb: method,
      route: routeOptions.url ?? 'none',
      status,
      code,
      requestId,
      ms,
      cause: causes.get(reply),
    });
  });
}
