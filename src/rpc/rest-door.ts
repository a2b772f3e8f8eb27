import type { IncomingMessage, ServerResponse } from 'node:http';
import { LedgerError } from '../domain/errors.ts';
import type { AnswerLog } from './answer-log.ts';
import type { ClientAddress } from './client-address.ts';
import type { Cors } from './cors.ts';
import { type Endpoint, rpcPathOf } from './endpoint.ts';
import { errorEnvelope } from './error-envelope.ts';
import type { Exchange } from './exchange.ts';
import { endAfterUnreadBody } from './http-body.ts';
import { checkHead, JSON_TYPE } from './http-server.ts';
import { makeMatcher } from './path-template.ts';
import type { Pipeline } from './pipeline.ts';
import { requestIdOf } from './request-id.ts';
import { REST_HEADERS, type RestEntry, RestExchange, restEntry } from './rest-exchange.ts';
import { RestStreamExchange } from './rest-stream.ts';
import { restRoutes } from './routes.ts';
import { statusOf } from './status.ts';

/** What the doors on the HTTP port share. */
export interface HttpDoorParts {
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly pipeline: Pipeline;
  readonly answers: AnswerLog;
  readonly cors: Cors;
  readonly clientAddress: ClientAddress;
  newId(): string;
}

/** Serves one request on node:http. */
export type HttpDoor = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * REST: every route of the descriptors, and the envelope for everything else. Routes of services that are not implemented
 * do not exist.
 */
export function createRestDoor(parts: HttpDoorParts): HttpDoor {
  const entries = restRoutes().flatMap((route): RestEntry[] => {
    const endpoint = parts.endpoints.get(rpcPathOf(route.method));
    return endpoint === undefined ? [] : [restEntry(route, endpoint)];
  });
  const match = makeMatcher(entries);

  return (request, response) => {
    const verb = request.method ?? '';
    const path = request.url ?? '';
    const refuse = (error: LedgerError, more: readonly string[] = []): void =>
      refuseRequest(parts, request, response, error, more);
    const fault = checkHead(request);
    if (fault !== null) return refuse(fault);
    let found: ReturnType<typeof match>;
    try {
      found = match(verb, path);
    } catch (error) {
      if (error instanceof LedgerError) return refuse(error);
      throw error;
    }
    if (verb === 'OPTIONS')
      return answerOptions(parts, request, response, found.kind === 'method_not_allowed' ? found.allow : null);
    if (found.kind === 'not_found') return refuse(noRoute());
    if (found.kind === 'method_not_allowed') {
      const allow = [...found.allow, 'OPTIONS'].join(', ');
      return refuse(new LedgerError('method_not_allowed', `This path takes ${allow}.`, { allow: found.allow }), [
        'allow',
        allow,
      ]);
    }
    const { route: entry, params } = found;
    const extra = parts.cors.answer(request.headers.origin);
    const { endpoint } = entry;
    if (endpoint.method.methodKind === 'server_streaming') {
      // What a stream would say is only known by running it.
      if (verb === 'HEAD') return headOfStream(parts, request, response);
      const stream = new RestStreamExchange(request, response, parts.clientAddress, entry, params, extra);
      watchHangUp(parts, stream, response);
      void parts.pipeline.serverStream(endpoint, stream);
      return;
    }
    const exchange = new RestExchange(request, response, parts.clientAddress, entry, params, extra);
    watchHangUp(parts, exchange, response);
    void parts.pipeline.unary(endpoint, exchange);
  };
}

export function watchHangUp(parts: HttpDoorParts, exchange: Exchange, response: ServerResponse): void {
  response.on('close', () => {
    if (!response.writableFinished) parts.pipeline.running.hangUp(exchange);
  });
}

/** The envelope for a request that is no call: `more` are further headers. */
export function refuseRequest(
  parts: HttpDoorParts,
  request: IncomingMessage,
  response: ServerResponse,
  error: LedgerError,
  more: readonly string[],
): void {
  const requestId = requestIdOf(request.headers['x-request-id'] as string | undefined, parts.newId);
  const status = statusOf(error.code).http;
  const body = errorEnvelope(error, requestId);
  const headers = ['x-request-id', requestId, ...REST_HEADERS, ...parts.cors.answer(request.headers.origin), ...more];
  headers.push(
    'content-type',
    JSON_TYPE,
    'content-length',
    String(Buffer.byteLength(body)),
    'cache-control',
    'no-store',
  );
  parts.answers.noCall('rest', request.method ?? '', 'none', status, error.code, requestId);
  endAfterUnreadBody(request, response, status, headers, body);
}

/** OPTIONS: a CORS preflight, or the question which methods a path takes (`allow`; null for a path that does not exist). */
export function answerOptions(
  parts: HttpDoorParts,
  request: IncomingMessage,
  response: ServerResponse,
  allow: readonly string[] | null,
): void {
  const isPreflight = request.headers['access-control-request-method'] !== undefined;
  const preflight = isPreflight ? parts.cors.preflight(request.headers.origin) : null;
  const methods = request.url === '*' ? ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'] : allow;
  if (preflight === null && methods === null) {
    refuseRequest(parts, request, response, noRoute(), []);
    return;
  }
  const requestId = requestIdOf(request.headers['x-request-id'] as string | undefined, parts.newId);
  const headers = ['x-request-id', requestId, ...(preflight ?? ['allow', [...(methods ?? []), 'OPTIONS'].join(', ')])];
  parts.answers.noCall('rest', 'OPTIONS', 'none', 204, null, requestId);
  endAfterUnreadBody(request, response, 204, headers, '');
}

function noRoute(): LedgerError {
  return new LedgerError('route_not_found', 'There is no such path; /docs lists all.');
}

function headOfStream(parts: HttpDoorParts, request: IncomingMessage, response: ServerResponse): void {
  const requestId = requestIdOf(request.headers['x-request-id'] as string | undefined, parts.newId);
  parts.answers.noCall('rest', 'HEAD', 'stream', 200, null, requestId);
  const headers = ['x-request-id', requestId, 'content-type', 'text/plain; charset=utf-8', 'cache-control', 'no-store'];
  endAfterUnreadBody(request, response, 200, headers, '');
}
