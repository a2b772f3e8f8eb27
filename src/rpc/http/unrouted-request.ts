import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ErrorCode, LedgerError } from '../../domain/errors.ts';
import { requestIdOf } from '../call/request-id.ts';
import { statusOf } from '../call/status.ts';
import { endAfterUnreadBody } from './body.ts';
import { errorEnvelope } from './error-envelope.ts';
import type { HttpHandlerParts } from './handler-parts.ts';
import { JSON_TYPE, NO_SNIFF } from './server.ts';

/** Answers to requests on the HTTP port that call no method. */

/** Paths of Connect and gRPC-Web begin with this. */
const CONNECT_PREFIX = '/svc.v1.';
/** Paths of REST begin with this, except for a few at the root. */
const REST_PREFIX = '/v1/';

/**
 * Answers a request that calls no method with the error envelope. `more` are further headers. `status` is the HTTP
 * status if it differs from the status of the code.
 */
export function refuseRequest(
  parts: HttpHandlerParts,
  request: IncomingMessage,
  response: ServerResponse,
  error: LedgerError,
  more: readonly string[],
  status = statusOf(error.code).http,
): void {
  const requestId = requestIdOf(request.headers['x-request-id'] as string | undefined, parts.newId);
  const body = errorEnvelope(error, requestId);
  const headers = ['x-request-id', requestId, ...NO_SNIFF, ...parts.cors.answer(request.headers.origin), ...more];
  headers.push(
    'content-type',
    JSON_TYPE,
    'content-length',
    String(Buffer.byteLength(body)),
    'cache-control',
    'no-store',
  );
  noteUnrouted(parts, request, 'none', status, error.code, requestId, error.cause);
  endAfterUnreadBody(request, response, status, headers, body);
}

/** Answers `method_not_allowed` for a path that takes `methods` and OPTIONS. */
export function refuseMethod(
  parts: HttpHandlerParts,
  request: IncomingMessage,
  response: ServerResponse,
  methods: readonly string[],
): void {
  const allow = [...methods, 'OPTIONS'];
  const text = allow.join(', ');
  const error = new LedgerError('method_not_allowed', `This path takes ${text}.`, { allow });
  refuseRequest(parts, request, response, error, ['allow', text]);
}

/**
 * Answers OPTIONS: a CORS preflight, or the question which methods a path takes. `allow` lists the methods; null if the
 * path does not exist.
 */
export function answerOptions(
  parts: HttpHandlerParts,
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
  noteUnrouted(parts, request, 'none', 204, null, requestId);
  endAfterUnreadBody(request, response, 204, headers, '');
}

/** Logs and counts a request that is answered as soon as it arrives. */
export function noteUnrouted(
  parts: HttpHandlerParts,
  request: IncomingMessage,
  route: string,
  status: number,
  code: ErrorCode | null,
  requestId: string,
  cause?: unknown,
): void {
  const transport = transportOf(request.url ?? '');
  parts.answers.unrouted({
    transport: transport,
    verb: request.method ?? '',
    route,
    status,
    code,
    requestId,
    ms: 0,
    cause,
  });
}

/** Returns the transport that a path belongs to. */
export function transportOf(path: string): 'connect' | 'rest' | 'http' {
  if (path.startsWith(CONNECT_PREFIX)) return 'connect';
  return path.startsWith(REST_PREFIX) ? 'rest' : 'http';
}

/** Makes `route_not_found`, for a path that no method has. */
export function noRoute(): LedgerError {
  return new LedgerError('route_not_found', 'There is no such path; /docs lists all.');
}
