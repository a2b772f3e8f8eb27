import type { IncomingMessage } from 'node:http';
import type { DescMethodServerStreaming, DescMethodUnary } from '@bufbuild/protobuf';
import {
  type ConnectRouter,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type MethodImpl,
} from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { universalResponseToNodeResponse } from '@connectrpc/connect-node';
import { LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { StandardStreams } from '../../runtime/limits/standard-streams.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { frameHeadBytes } from '../grpc/worker/framing.ts';
import { connectCompressions, encodingFor } from '../http/compression.ts';
import type { HttpHandlerParts } from '../http/handler-parts.ts';
import type { HttpHandler, HttpResponse } from '../http/response.ts';
import { requestIdIn } from '../http/server.ts';
import { answerOptions, noteUnrouted, refuseMethod, refuseRequest } from '../http/unrouted-request.ts';
import { type ConnectFormat, connectFormat } from './body.ts';
import { ConnectCall } from './connect-call.ts';
import { addReflection, reflectionPath } from './reflection.ts';

interface NodeRequest {
  readonly request: IncomingMessage;
  readonly response: HttpResponse;
}

const nodeRequest = createContextKey<NodeRequest | null>(null);

/**
 * Serves Connect and gRPC-Web over HTTP/1.1 with connect-es, for all methods but bidirectional streams, and reflection.
 * Of methods, connect-es gets an empty message in place of the body: it would read the body before the caller's
 * credential is checked, and its JSON reader accepts duplicate keys. ConnectCall reads the body later.
 */
export function createConnectHandler(parts: HttpHandlerParts): HttpHandler {
  const router = createConnectRouter({
    grpc: false,
    acceptCompression: connectCompressions(parts.memory),
    compressMinBytes: limits.compressedMinBytes,
    readMaxBytes: limits.requestBodyMaxBytes,
    jsonOptions: { alwaysEmitImplicit: true },
  });
  for (const endpoint of parts.endpoints.values()) register(parts, router, endpoint);
  addReflection(router);
  const reflections = new StandardStreams();
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (request, response) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    const refuse = (error: LedgerError): void => refuseRequest(parts, request, response, error);
    const handler = handlers.get(path);
    if (request.method === 'OPTIONS')
      return answerOptions(parts, request, response, handler === undefined ? null : ['POST']);
    if (handler === undefined) return refuse(new LedgerError('route_not_found', 'There is no such method here.'));
    if (request.method !== 'POST') return refuseMethod(parts, request, response, ['POST']);
    const format = connectFormat(request.headers['content-type']);
    if (format === null || handler.supportedContentType(request.headers['content-type'] ?? '') === false) {
      const message = 'Send a content type of Connect or gRPC-Web.';
      return refuse(new LedgerError('unsupported_media_type', message, { header: 'Content-Type' }));
    }
    const late = checkTimeout(format, request);
    if (late !== null) return refuse(late);
    const cors = parts.cors.answer(request.headers.origin);
    for (let at = 0; at < cors.length; at += 2) response.setHeader(cors[at] ?? '', cors[at + 1] ?? '');
    if (path === reflectionPath) boundReflection(reflections, request, response);
    run(parts, handler, request, response).catch(() => response.destroy());
  };
}

/** Ends the connection of a stream of reflection for newer streams, and after a time. */
function boundReflection(reflections: StandardStreams, request: IncomingMessage, response: HttpResponse): void {
  const stream = { displace: () => void response.destroy() };
  const late = setTimeout(stream.displace, limits.httpReflectionMaxMs).unref();
  response.on('close', () => {
    clearTimeout(late);
    reflections.remove(stream);
  });
  reflections.add(request.socket, stream);
}

/**
 * connect-es would refuse the timeout header with its own message, without code and request id. A right one is made to
 * fit a timer.
 */
function checkTimeout({ timeout }: ConnectFormat, request: IncomingMessage): LedgerError | null {
  const { header, expected } = timeout;
  const name = header.toLowerCase();
  const given = request.headers[name];
  if (given === undefined) return null;
  const bound = timeout.bound(String(given));
  if (bound === null)
    return new LedgerError('invalid_argument', `${header} must be ${expected}.`, { header, expected });
  request.headers[name] = bound;
  return null;
}

async function run(
  parts: HttpHandlerParts,
  handler: UniversalHandler,
  request: IncomingMessage,
  response: HttpResponse,
): Promise<void> {
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  const isReflection = handler.requestPath === reflectionPath;
  if (isReflection) {
    const requestId = requestIdIn(request, parts.newId);
    response.setHeader('x-request-id', requestId);
    noteUnrouted(parts, request, { route: reflectionPath, status: 200, code: null, requestId });
  }
  try {
    const answer = await handler({
      // connect-es refuses streams both ways over HTTP/1.1, where reflection works with one request after another.
      httpVersion: isReflection ? '2.0' : request.httpVersion,
      method: 'POST',
      url: `http://localhost${handler.requestPath}`,
      header: headersOf(request, isReflection, !mayCompress(parts.endpoints.get(handler.requestPath))),
      body: isReflection ? request : emptyMessage(request),
      signal: gone.signal,
      contextValues: createContextValues().set(nodeRequest, { request, response }),
    });
    if (!request.complete) response.setHeader('connection', 'close');
    await universalResponseToNodeResponse(answer, response);
  } catch (error) {
    if (!gone.signal.aborted && !response.headersSent)
      refuseRequest(parts, request, response, new LedgerError('internal', 'The call failed.', {}, error));
    else response.destroy();
  }
}

/** Messages of a live stream are encoded once for many callers, and each is to arrive at once. */
function mayCompress(endpoint: Endpoint | undefined): boolean {
  return endpoint !== undefined && !endpoint.hasSecret && !endpoint.rule.live;
}

/** Headers of the body, which connect-es does not get. */
const bodyHeaders = new Set([
  'content-length',
  'content-encoding',
  'connect-content-encoding',
  'grpc-encoding',
  'transfer-encoding',
]);

const acceptHeaders = ['accept-encoding', 'connect-accept-encoding', 'grpc-accept-encoding'];

/** The headers of the call for connect-es. Without those that accept an encoding, it compresses nothing. */
function headersOf(request: IncomingMessage, isBodyRead: boolean, isPlain: boolean): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === 'string' && (isBodyRead || !bodyHeaders.has(name))) headers.set(name, value);
  }
  // connect-es knows no weights: it takes the first encoding that is named.
  const encoding = encodingFor(headers.get('accept-encoding') ?? undefined);
  if (encoding === null) headers.delete('accept-encoding');
  else headers.set('accept-encoding', encoding);
  if (isPlain) for (const name of acceptHeaders) headers.delete(name);
  return headers;
}

async function* emptyMessage(request: IncomingMessage): AsyncIterable<Uint8Array> {
  const format = connectFormat(request.headers['content-type']);
  const text = format?.json === true ? Buffer.from('{}') : Buffer.alloc(0);
  if (format?.framed !== true) {
    yield text;
    return;
  }
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUInt32BE(text.length, 1);
  yield Buffer.concat([head, text]);
}

function register(parts: HttpHandlerParts, router: ConnectRouter, endpoint: Endpoint): void {
  const { method } = endpoint;
  const callOf = (context: HandlerContext): ConnectCall => {
    const node = context.values.get(nodeRequest);
    const format = connectFormat(node?.request.headers['content-type']);
    if (node === null || format === null) throw new TypeError('A Connect call without its request');
    return new ConnectCall(parts, node.request, node.response, endpoint, format, context);
  };
  if (method.methodKind === 'unary') {
    const unary = async (_empty: unknown, context: HandlerContext): Promise<object> => {
      const incoming = callOf(context);
      void parts.pipeline.unary(endpoint, incoming);
      for await (const answer of incoming.answers) return answer;
      throw new TypeError('A unary call without an answer');
    };
    router.rpc(method as DescMethodUnary, unary as MethodImpl<DescMethodUnary>);
  } else if (method.methodKind === 'server_streaming') {
    const stream = (_empty: unknown, context: HandlerContext): AsyncIterable<object> => {
      const incoming = callOf(context);
      void parts.pipeline.serverStream(endpoint, incoming);
      return incoming.answers;
    };
    router.rpc(method as DescMethodServerStreaming, stream as MethodImpl<DescMethodServerStreaming>);
  }
}
