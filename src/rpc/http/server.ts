import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ErrorCode, LedgerError } from '../../domain/errors.ts';
import { limits } from '../../limits.ts';
import { requestIdOf } from '../call/request-id.ts';
import type { HttpConnections } from './connections.ts';
import { errorEnvelope } from './error-envelope.ts';
import { type HttpHandler, HttpResponse } from './response.ts';

/** Certificate chain and private key, PEM. */
export interface TlsKeys {
  readonly cert: Buffer | string;
  readonly key: Buffer | string;
}

/** What a server does with what comes. */
export interface HttpRequests {
  readonly serve: HttpHandler;
  /** Answers a request whose Expect is not 100-continue. */
  readonly refuseExpect: HttpHandler;
  /** Bytes that are no request, or one for a proxy, were answered so. `verb` is '' where there is none. */
  refused(verb: string, status: number, code: ErrorCode, requestId: string): void;
}

/** Requests whose caller waits for `100 Continue` before it sends the body: whoever reads the body asks for it. */
const expectsContinue = new WeakSet<IncomingMessage>();

/** Tells a caller that waits for it to send the body now. */
export function continueIfExpected(request: IncomingMessage, response: ServerResponse): void {
  if (expectsContinue.delete(request)) response.writeContinue();
}

/** What an answer's line in the log is found by, from when a call has begun. */
const givenId = Symbol('request id');
type Identified = ServerResponse & { [givenId]?: string };

/** Notes the request id of an answer, for the case that its request turns out to be no HTTP before it is given. */
export function identifyAnswer(response: ServerResponse, requestId: string): void {
  (response as Identified)[givenId] = requestId;
}

/** The request id of an answer under way. One that has none yet gets it from here, by way of the request's header. */
function idOf(response: Identified, newId: () => string): string {
  const { headers } = response.req;
  const given = response[givenId];
  if (given !== undefined) return given;
  const id = requestIdOf(headers['x-request-id'] as string | undefined, newId);
  headers['x-request-id'] = id;
  return id;
}

/**
 * A node:http (or https) server with the bounds of limits.ts, that answers with the error envelope whatever it cannot
 * read as HTTP. Headers sent several times come joined, so that two credentials never pass for one.
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
    // A missing Host gets our envelope instead of Node's bare 400.
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
  // Node's types cannot say that a server's answers are of a class of its own.
  const server = made as unknown as Server;
  // Node drops headers beyond this count without a word; one more is kept so that checkHead sees it and refuses.
  server.maxHeadersCount = limits.headersMaxCount + 1;
  server.maxConnections = limits.connectionsMax;
  // Closing the server would end idle connections at once, and requests on their way with a reset: `connections` drains
  // them.
  server.closeIdleConnections = () => {};
  server.on(tls === null ? 'connection' : 'secureConnection', (socket: Socket) => connections.add(socket));
  if (tls !== null) server.on('connection', (socket: Socket) => connections.addBelowTls(socket));
  server.on('checkContinue', (request: IncomingMessage, response: HttpResponse) => {
    expectsContinue.add(request);
    listener(request, response);
  });
  server.on('checkExpectation', connections.listener(requests.refuseExpect));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const connection = connections.of(socket);
    // A TLS handshake that failed or took too long has no connection.
    if (connection === null || error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const response = connection.newest;
    // Bytes that break a request's body must not be answered a second time.
    const broken = response === null || response.req.complete ? null : response;
    connection.afterAnswers(broken, () => {
      if (broken === null) refuse(socket, '', ...refusalOf(error.code));
      else if (broken.headersSent) socket.end(() => socket.destroy());
      else answerBytes(socket, ...refusalOf(error.code), idOf(broken, newId), connections.headers);
    });
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    connections.of(socket)?.afterAnswers(null, () => {
      refuse(socket, 'CONNECT', 405, new LedgerError('method_not_allowed', 'This is no proxy.'));
    });
  });
  return server;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The header that keeps browsers from guessing another media type than the answer's. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const;

const HOST = /^[A-Za-z0-9.\-_~%[\]:]+$/;
const SLASH = 0x2f;

/**
 * A target such as `http://host/path?query` becomes its path and query, as RFC 9112, section 3.2.2, asks of every
 * server. Its authority stands in for Host, unless that is missing or wrong: checkHead refuses such a request in this
 * form too.
 */
function takeAbsoluteForm(request: IncomingMessage): void {
  const [, authority, path = ''] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(request.url ?? '') ?? [];
  if (authority === undefined) return;
  request.url = path.startsWith('/') ? path : `/${path}`;
  const { headers } = request;
  if (headers.host !== undefined && HOST.test(headers.host)) headers.host = authority;
}

/** What is wrong with a request's head beyond its syntax; null if nothing is. */
export function checkHead(request: IncomingMessage): LedgerError | null {
  const { host, 'transfer-encoding': coding } = request.headers;
  // A hop that speaks HTTP/1.0 knows no coding, and would see where the body ends elsewhere (RFC 9112, section 6.1).
  if (coding !== undefined && (request.httpVersionMinor === 0 || coding.toLowerCase() !== 'chunked')) {
    return new LedgerError('unsupported_media_type', 'A request body comes as it is, or over HTTP/1.1 in chunks.', {
      header: 'Transfer-Encoding',
      expected: 'chunked',
    });
  }
  if (request.rawHeaders.length > 2 * limits.headersMaxCount) {
    return new LedgerError('invalid_argument', `A request may have ${limits.headersMaxCount} headers.`, {
      limit: limits.headersMaxCount,
    });
  }
  if (host === undefined ? request.httpVersionMinor > 0 : !HOST.test(host)) {
    return new LedgerError('invalid_argument', 'A request must name one Host.', { header: 'Host' });
  }
  return null;
}

function refusalOf(parserCode: string | undefined): [status: number, error: LedgerError] {
  const invalid = (message: string): LedgerError => new LedgerError('invalid_argument', message);
  switch (parserCode) {
    case 'HPE_HEADER_OVERFLOW':
      // Node does not say which of the two it was.
      return [
        431,
        invalid(`A request may have ${limits.headersMaxCount} headers, of ${limits.headersMaxBytes} bytes together.`),
      ];
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

/** Answers on the bare socket, where there is no response object, and ends the connection. */
function answerBytes(socket: Duplex, status: number, error: LedgerError, id: string, headers: readonly string[]): void {
  const body = errorEnvelope(error, id);
  const head = [
    `HTTP/1.1 ${status} ${phrases[status]}`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${id}`,
    // None would do (RFC 9110, section 10.2.1).
    ...(status === 405 ? ['allow:'] : []),
    ...headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1]}`] : [])),
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
