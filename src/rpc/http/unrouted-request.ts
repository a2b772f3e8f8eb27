import type { IncomingMessage, ServerResponse } from 'node:http';
import { LedgerError } from '../../domain/errors.ts';
import { statusOf } from '../call/status.ts';
import type { UnroutedRequest } from '../pipeline/answer-log.ts';
import { endAfterUnreadBody } from './body.ts';
import { errorEnvelope } from './error-envelope.ts';
import type { HttpHandlerParts } from './handler-parts.ts';
import { jsonHeaders, NO_SNIFF, requestIdIn } from './server.ts';

// Answers to requests on the HTTP port that call no method.

/** Paths of Connect and gRPC-Web begin with one of these. */
const CONNECT_PREFIXES = ['/svc.v1.', '/grpc.reflection.'];
/** Paths of REST begin with this, except for a few at the root. */
const REST_PREFIX = '/v1/';

/** Answers with the error envelope. `status` is the HTTP status if it differs from that of the code. */
export function refuseRequest(
  parts: HttpHandlerParts,
  request: IncomingMessage,
  response: ServerResponse,
  error: LedgerError,
  moreHeaders: readonly string[] = [],
  status = statusOf(error.code).http,
): void {
  const requestId = requestIdIn(request, parts.newId);
  const body = errorEnvelope(error, requestId);
  const headers = ['x-request-id', requestId, ...NO_SNIFF, ...parts.cors.answer(request.headers.origin)];
  headers.push(...moreHeaders, ...jsonHeaders(body), 'cache-control', 'no-store');
  noteUnrouted(parts, request, { route: 'none', status, code: error.code, requestId, cause: error.cause });
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

/** Answers OPTIONS, also as a CORS preflight. `allow` lists the methods of the path; null if it does not exist. */
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
    refuseRequest(parts, request, response, noRoute());
    return;
  }
  const requestId = requestIdIn(request, parts.newId);
  const headers = ['x-request-id', requestId, ...(preflight ?? ['allow', [...(methods ?? []), 'OPTIONS'].join(', ')])];
  noteUnrouted(parts, request, { route: 'none', status: 204, code: null, requestId });
  endAfterUnreadBody(request, response, 204, headers, '');
}

/** Logs and counts a request that is answered as soon as it arrives. */
export function noteUnrouted(
  { answers }: HttpHandlerParts,
  { url = '', method: verb = '' }: IncomingMessage,
  answered: Omit<UnroutedRequest, 'transport' | 'verb' | 'ms'>,
): void {
  answers.unrouted({ transport: transportOf(url), verb, ms: 0, ...answered });
}

/** Returns the transport that a path belongs to. */
export function transportOf(path: string): 'connect' | 'rest' | 'http' {
  if (CONNECT_PREFIXES.some((prefix) => path.startsWith(prefix))) return 'connect';
  return path.startsWith(REST_PREFIX) ? 'rest' : 'http';
}

/** Makes `route_not_found`, for a path that no method has. `instead` is the path that was probably meant. */
export function noRoute(instead?: string): LedgerError {
  if (instead === undefined) return new LedgerError('route_not_found', 'There is no such path; /docs lists all.');
  const message = `There is no such path; the paths of the API begin with /v1: ${instead}`;
  return new LedgerError('route_not_found', message, { expected: instead });
}
