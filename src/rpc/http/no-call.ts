import type { IncomingMessage, ServerResponse } from 'node:http';
import { LedgerError } from '../../domain/errors.ts';
import { requestIdOf } from '../call/request-id.ts';
import { statusOf } from '../call/status.ts';
import { endAfterUnreadBody } from './body.ts';
import type { HttpDoorParts } from './door-parts.ts';
import { errorEnvelope } from './error-envelope.ts';
import { JSON_TYPE, NO_SNIFF } from './server.ts';

/** Answers to requests on the HTTP port that are no call of a method. */

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
  const headers = ['x-request-id', requestId, ...NO_SNIFF, ...parts.cors.answer(request.headers.origin), ...more];
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

/** `route_not_found`, for a path that no method has. */
export function noRoute(): LedgerError {
  return new LedgerError('route_not_found', 'There is no such path; /docs lists all.');
}
