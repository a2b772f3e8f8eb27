import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LedgerError } from '../../domain/errors.ts';
import { rpcPathOf } from '../endpoints/endpoint.ts';
import { makeMatcher } from '../endpoints/path-template.ts';
import { restRoutes } from '../endpoints/routes.ts';
import { endAfterUnreadBody } from '../http/body.ts';
import type { HttpHandlerParts } from '../http/handler-parts.ts';
import type { HttpHandler } from '../http/response.ts';
import { requestIdIn } from '../http/server.ts';
import { answerOptions, noRoute, noteUnrouted, refuseMethod, refuseRequest } from '../http/unrouted-request.ts';
import { RestLiveCall } from './live-call.ts';
import { RestCall, type RestEntry, restEntry } from './rest-call.ts';
import { EVENTS, PLAIN, RestStreamCall } from './stream-call.ts';

/** Serves the routes of all endpoints, and the error envelope for everything else. */
export function createRestHandler(parts: HttpHandlerParts): HttpHandler {
  const entries = restRoutes().flatMap((route): RestEntry[] => {
    const endpoint = parts.endpoints.get(rpcPathOf(route.method));
    return endpoint === undefined ? [] : [restEntry(route, endpoint)];
  });
  const match = makeMatcher(entries);
  /** The path with the API's version before it, if that is a path of the API. */
  const versioned = (verb: string, path: string): string | undefined => {
    if (!path.startsWith('/')) return undefined;
    const [candidate = ''] = `/v1${path}`.split(/[?#]/, 1);
    return match(verb, candidate).kind === 'not_found' ? undefined : candidate;
  };

  // Throws LedgerError for a path whose percent-encoding is broken.
  return function handleRestRequest(request, response) {
    const verb = request.method ?? '';
    const path = request.url ?? '';
    const refuse = (error: LedgerError): void => refuseRequest(parts, request, response, error);
    const found = match(verb, path);
    if (verb === 'OPTIONS')
      return answerOptions(parts, request, response, found.kind === 'method_not_allowed' ? found.allow : null);
    if (found.kind === 'not_found') return refuse(noRoute(versioned(verb, path)));
    if (found.kind === 'method_not_allowed') return refuseMethod(parts, request, response, found.allow);
    const { route: entry, params } = found;
    const { endpoint } = entry;
    if (endpoint.method.methodKind === 'unary')
      return void parts.pipeline.unary(endpoint, new RestCall(parts, request, response, entry, params));
    // The content of a stream is only known by running it, so HEAD gets the headers alone.
    if (verb === 'HEAD') return headOfStream(parts, request, response, entry);
    const Call = endpoint.rule.live ? RestLiveCall : RestStreamCall;
    void parts.pipeline.serverStream(endpoint, new Call(parts, request, response, entry, params));
  };
}

function headOfStream(
  parts: HttpHandlerParts,
  request: IncomingMessage,
  response: ServerResponse,
  { template: route, rule }: RestEntry,
): void {
  const requestId = requestIdIn(request, parts.newId);
  noteUnrouted(parts, request, { route, status: 200, code: null, requestId });
  const type = rule.live ? EVENTS : PLAIN;
  const headers = ['x-request-id', requestId, 'content-type', type, 'cache-control', 'no-store'];
  endAfterUnreadBody(request, response, 200, headers, '');
}
