import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
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

/** How a server handles its requests. */
export interface HttpRequests {
  readonly serve: HttpHandler;
  /** Answers a request whose Expect is not 100-continue. */
  readonly refuseExpect: HttpHandler;
  /**
   * Called after bytes that are no request, or a CONNECT, were answered with an error. `verb` is '' if there is none.
   */
  refused(verb: string, status: number, code: ErrorCode, requestId: string): void;
}

/** Requests whose caller waits for `100 Continue` before it sends the body. It is sent when the body is read. */
const expectsContinue = new WeakSet<IncomingMessage>();

/** Tells a caller that waits for `100 Continue` to send the body now. */
export function continueIfExpected(request: IncomingMessage, response: ServerResponse): void {
  if (expectsContinue.delete(request)) response.writeContinue();
}

/** The request id of an answer, set when its call begins. The answer's log line has the same id. */
const givenId = Symbol('request id');
type Identified = ServerResponse & { [givenId]?: string };

/**
 * Stores the request id of an answer. It is needed if the rest of the request turns out to be malformed HTTP before the
 * answer is given.
 */
export function identifyAnswer(response: ServerResponse, requestId: string): void {
  (response as Identified)[givenId] = requestId;
}

/**
 * Returns the request id of an unfinished answer. If there is none yet, one is made and put into the request's header,
 * so that the call uses it too.
 */
function idOf(response: Identified, newId: () => string): string {
  const { headers } = response.req;
  const given = response[givenId];
  if (given !== undefined) return given;
  const id = requestIdOf(headers['x-request-id'] as string | undefined, newId);
  headers['x-request-id'] = id;
  return id;
}

/**
 * Makes a node:http (or https) server with the bounds of limits.ts. It answers with the error envelope what it cannot
 * read as HTTP. Headers that are sent several times are joined, so that two credentials never pass for one.
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
  // Node silently drops headers beyond this count. One more is kept so that checkHead sees it and refuses.
  server.maxHeadersCount = limits.headersMaxCount + 1;
  server.maxConnections = limits.connectionsMax;
  // Node would close idle connections when the server closes, with a reset for requests on their way. `connections`
  // drains them instead.
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
    // If malformed bytes break the body of a running request, there must be only one answer: this error is sent for
    // that request.
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

/** Keeps browsers from guessing another media type than the answer's. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const;

const HOST = /^[A-Za-z0-9.\-_~%[\]:]+$/;
const SLASH = 0x2f;

/**
 * Replaces a target such as `http://host/path?query` by its path and query, as RFC 9112, section 3.2.2, requires. Its
 * authority replaces the Host header, unless Host is missing or malformed: checkHead then refuses the request, as in
 * the usual form.
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
      // Node does not say which of the two bounds was exceeded.
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
