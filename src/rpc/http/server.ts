import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ErrorCode, LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { requestIdOf } from '../call/request-id.ts';
import type { HttpConnections } from './connections.ts';
import { errorEnvelope } from './error-envelope.ts';
import { type HttpHandler, HttpResponse } from './response.ts';

/** Certificate chain and private key, PEM. */
export interface TlsKeys {
  readonly cert: Buffer | string;
  readonly key: Buffer | string;
}

export interface HttpRequests {
  readonly serve: HttpHandler;
  /** Answers a request whose Expect is not 100-continue. */
  readonly refuseExpect: HttpHandler;
  /** Notes that bytes that are no request (`verb` is ''), or a CONNECT, were answered with an error. */
  refused(verb: string, status: number, code: ErrorCode, requestId: string): void;
}

/** Returns the request id that was sent, if it is a valid one. Otherwise makes one. */
export function requestIdIn({ headers }: IncomingMessage, newId: () => string): string {
  return requestIdOf(headers['x-request-id'] as string | undefined, newId);
}

/** Returns the request id of an unfinished answer, and puts it into the request's header for the call to use it too. */
function idOf({ req, requestId }: HttpResponse, newId: () => string): string {
  const id = requestId ?? requestIdIn(req, newId);
  req.headers['x-request-id'] = id;
  return id;
}

/**
 * Makes a server with the bounds of limits.ts. It answers with the error envelope what it cannot read as HTTP. Headers
 * that are sent several times are joined, so that two credentials never pass for one.
 */
export function createHttpServer(
  requests: HttpRequests,
  tls: TlsKeys | null,
  newId: () => string,
  connections: HttpConnections,
): Server {
  const listener = connections.listener((request, response) => {
    if (request.url?.charCodeAt(0) !== SLASH) takeAbsoluteForm(request);
    requests.serve(request, response);
  });
  const refuse = (socket: Duplex, verb: string, status: number, error: LedgerError): void => {
    const id = newId();
    requests.refused(verb, status, error.code, id);
    answerBytes(socket, status, error, id, connections.headers);
  };
  const options = {
    maxHeaderSize: limits.headersMaxBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    keepAliveTimeoutBuffer: limits.keepAliveBufferMs,
    connectionsCheckingInterval: limits.connectionsCheckMs,
    joinDuplicateHeaders: true,
    // A missing Host gets the error envelope instead of Node's bare 400.
    requireHostHeader: false,
    noDelay: true,
    ServerResponse: HttpResponse,
  };
  const made =
    tls === null
      ? createServer(options, listener)
      : createSecureServer(
          { ...options, ...tls, minVersion: 'TLSv1.2', handshakeTimeout: limits.tlsHandshakeTimeoutMs },
          listener,
        );
  // Node's types cannot express that a server's answers have their own class.
  const server = made as unknown as Server;
  // Node silently drops headers beyond this count. With one more, checkHead can refuse the request.
  server.maxHeadersCount = limits.headersMaxCount + 1;
  // Node would reset requests on their way to idle connections. `connections` drains them instead.
  server.closeIdleConnections = () => {};
  server.on('connection', (socket: Socket) => connections.accept(socket));
  server.on(tls === null ? 'connection' : 'secureConnection', (socket: Socket) => connections.add(socket));
  server.on('checkContinue', (request: IncomingMessage, response: HttpResponse) => {
    response.expectsContinue = true;
    listener(request, response);
  });
  server.on('checkExpectation', connections.listener(requests.refuseExpect));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const connection = connections.answering(socket);
    // A TLS handshake that failed or took too long has no connection.
    if (connection === null || error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const response = connection.newest;
    // Malformed bytes in the body of a running request: this error is that request's only answer.
    const broken = response === null || response.req.complete ? null : response;
    connection.afterAnswers(broken, () => {
      if (broken === null) refuse(socket, '', ...refusalOf(error.code));
      else if (broken.headersSent) socket.end(() => socket.destroy());
      else answerBytes(socket, ...refusalOf(error.code), idOf(broken, newId), connections.headers);
    });
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    connections.answering(socket)?.afterAnswers(null, () => {
      refuse(socket, 'CONNECT', 405, new LedgerError('method_not_allowed', 'This is no proxy.'));
    });
  });
  return server;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** Headers of a JSON body, as `name, value, …`. */
export function jsonHeaders(body: string | Buffer): string[] {
  return ['content-type', JSON_TYPE, 'content-length', String(Buffer.byteLength(body))];
}

/** Keeps browsers from guessing another media type than the answer's. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const;

const HOST = /^[A-Za-z0-9.\-_~%[\]:]+$/;
const SLASH = 0x2f;

/**
 * Replaces a target such as `http://host/path?query` by its path and query (RFC 9112, section 3.2.2). Its authority
 * replaces the Host header, unless checkHead refuses the request for its Host.
 */
function takeAbsoluteForm(request: IncomingMessage): void {
  const [, authority, path = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(request.url ?? '') ?? [];
  if (authority === undefined) return;
  request.url = path.startsWith('/') ? path : `/${path}`;
  const { headers } = request;
  if (headers.host !== undefined && HOST.test(headers.host)) headers.host = authority;
}

/** Returns what is wrong with a request's head beyond its syntax; null if nothing is. */
export function checkHead(request: IncomingMessage): LedgerError | null {
  const { host, 'transfer-encoding': coding } = request.headers;
  // An HTTP/1.0 hop knows no transfer coding and would find the body's end elsewhere (RFC 9112, section 6.1).
  if (coding !== undefined && (request.httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked')) {
    const details = { header: 'Transfer-Encoding', expected: 'chunked' };
    return new LedgerError(
      'unsupported_media_type',
      'A request body comes as it is, or over HTTP/1.1 in chunks.',
      details,
    );
  }
  const limit = limits.headersMaxCount;
  if (request.rawHeaders.length > 2 * limit)
    return new LedgerError('invalid_argument', `A request may have ${limit} headers.`, { limit });
  if (host === undefined ? request.httpVersionMinor > 0 : !HOST.test(host))
    return new LedgerError('invalid_argument', 'A request must name one Host.', { header: 'Host' });
  return null;
}

function refusalOf(parserCode: string | undefined): [status: number, error: LedgerError] {
  const { headersMaxCount, headersMaxBytes } = limits;
  const invalid = (message: string): LedgerError => new LedgerError('invalid_argument', message);
  switch (parserCode) {
    case 'HPE_HEADER_OVERFLOW':
      // Node does not say which of the two bounds was exceeded.
      return [431, invalid(`A request may have ${headersMaxCount} headers, of ${headersMaxBytes} bytes together.`)];
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return [413, new LedgerError('payload_too_large', 'The chunk extensions are too large.')];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, invalid('The request did not arrive in time.')];
    default:
      return [400, invalid('This is no well-formed HTTP request.')];
  }
}

const phrases: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Content Too Large',
  431: 'Request Header Fields Too Large',
};

/** Answers on the bare socket, because there is no response object, and closes the connection. */
function answerBytes(socket: Duplex, status: number, error: LedgerError, id: string, headers: readonly string[]): void {
  const body = errorEnvelope(error, id);
  const head = [
    `HTTP/1.1 ${status} ${phrases[status]}`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${id}`,
    // An empty Allow: no method is allowed (RFC 9110, section 10.2.1).
    ...(status === 405 ? ['allow:'] : []),
    ...headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1]}`] : [])),
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
