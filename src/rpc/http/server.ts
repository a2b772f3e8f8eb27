import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { type ErrorCode, LedgerError } from '../../domain/errors.ts';
import { limits } from '../../limits.ts';
import { requestIdOf } from '../call/request-id.ts';
import { errorEnvelope } from './error-envelope.ts';

/** Certificate chain and private key, PEM. */
export interface TlsKeys {
  readonly cert: Buffer | string;
  readonly key: Buffer | string;
}

/** What a server does with what comes. */
export interface HttpRequests {
  readonly serve: RequestListener;
  /** Answers a request whose Expect is not 100-continue. */
  readonly refuseExpect: RequestListener;
  /** Bytes that are no request, or one for a proxy, were answered so. `verb` is '' where there is none. */
  refused(verb: string, status: number, code: ErrorCode, requestId: string): void;
}

/** Requests whose caller waits for `100 Continue` before it sends the body: whoever reads the body asks for it. */
const expectsContinue = new WeakSet<IncomingMessage>();

/** Tells a caller that waits for it to send the body now. */
export function continueIfExpected(request: IncomingMessage, response: ServerResponse): void {
  if (expectsContinue.delete(request)) response.writeContinue();
}

/** The answer under way on a connection: bytes that break its request's body must not be answered a second time. */
const underWay = Symbol('answer under way');
type Answering = Duplex & { [underWay]?: ServerResponse };

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
 * A node:http (or https) server with the bounds of limits.ts, that answers with the error envelope whatever it cannot read
 * as HTTP. Headers sent several times come joined, so that two credentials never pass for one.
 */
export function createHttpServer(requests: HttpRequests, tls: TlsKeys | null, newId: () => string): Server {
  const listener: RequestListener = (request, response) => {
    (request.socket as Answering)[underWay] = response;
    if (request.url?.charCodeAt(0) !== SLASH) takeAbsoluteForm(request);
    requests.serve(request, response);
  };
  const refuse = (socket: Duplex, verb: string, status: number, error: LedgerError): void => {
    const id = newId();
    requests.refused(verb, status, error.code, id);
    answerBytes(socket, status, error, id);
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
  };
  const server =
    tls === null
      ? createServer(options, listener)
      : createSecureServer({ ...options, ...tls, minVersion: 'TLSv1.2' }, listener);
  // Node drops headers beyond this count without a word; one more is kept so that checkHead sees it and refuses.
  server.maxHeadersCount = limits.headersMaxCount + 1;
  server.maxConnections = limits.connectionsMax;
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    expectsContinue.add(request);
    listener(request, response);
  });
  server.on('checkExpectation', requests.refuseExpect);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const response = (socket as Answering)[underWay];
    const isInBody = response !== undefined && !response.req.complete;
    if (isInBody && response.headersSent) socket.end(() => socket.destroy());
    else if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
    else if (isInBody) answerBytes(socket, ...refusalOf(error.code), idOf(response, newId));
    else refuse(socket, '', ...refusalOf(error.code));
  });
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    refuse(socket, 'CONNECT', 405, new LedgerError('method_not_allowed', 'This is no proxy.'));
  });
  return server;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The header that keeps browsers from guessing another media type than the answer's. */
export const NO_SNIFF = ['x-content-type-options', 'nosniff'] as const;

const HOST = /^[A-Za-z0-9.\-_~%[\]:]+$/;
const SLASH = 0x2f;

/**
 * A target such as `http://host/path?query` becomes its path and query, as RFC 9112, section 3.2.2, asks of every server. Its authority stands in
 * for Host, unless that is missing or wrong: checkHead refuses such a request in this form too.
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
function answerBytes(socket: Duplex, status: number, error: LedgerError, id: string): void {
  const body = errorEnvelope(error, id);
  const head = [
    `HTTP/1.1 ${status} ${phrases[status]}`,
    `content-type: ${JSON_TYPE}`,
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${id}`,
    // None would do (RFC 9110, section 10.2.1).
    ...(status === 405 ? ['allow:'] : []),
    'connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
