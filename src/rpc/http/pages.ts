import { LedgerError } from '../../domain/errors.ts';
import { limits } from '../../runtime/limits/limits.ts';
import { statusOf } from '../call/status.ts';
import { compressOnce, encodingFor } from './compression.ts';
import { errorEnvelope } from './error-envelope.ts';
import type { HttpHandlerParts } from './handler-parts.ts';
import { type HttpHandler, isShared, sharedBytes } from './response.ts';
import { JSON_TYPE, requestIdIn } from './server.ts';
import { answerOptions, refuseMethod } from './unrouted-request.ts';

interface PageAnswer {
  readonly status: number;
  /** `name, value, …`, without Content-Length. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** Pages beside the API, by path. A page that throws is answered `internal`. */
export type Pages = ReadonlyMap<string, () => PageAnswer>;

const METHODS = ['GET', 'HEAD'];

/** `serveOther` gets requests for other paths. */
export function createPageHandler(parts: HttpHandlerParts, pages: Pages, serveOther: HttpHandler): HttpHandler {
  return (request, response) => {
    const { method: verb = '', url = '' } = request;
    const route = pathOf(url);
    const page = pages.get(route);
    if (page === undefined) return serveOther(request, response);
    if (verb === 'OPTIONS') return answerOptions(parts, request, response, METHODS);
    if (!METHODS.includes(verb)) return refuseMethod(parts, request, response, METHODS);
    const startedMs = performance.now();
    const requestId = requestIdIn(request, parts.newId);
    response.requestId = requestId;
    const { answer, code, cause } = answerOf(page, requestId);
    const { status } = answer;
    response.once('close', () => {
      const ms = performance.now() - startedMs;
      parts.answers.unrouted({ transport: 'page', verb, route, status, code, requestId, ms, cause });
    });
    const send = (body: Buffer, headers: readonly string[] = []): void => {
      const length = ['content-length', String(body.length)];
      response.writeHead(status, ['x-request-id', requestId, ...answer.headers, ...headers, ...length]).end(body);
    };
    if (!isCompressible(answer)) return send(answer.body);
    const vary = ['vary', 'Accept-Encoding'];
    const encoding = encodingFor(request.headers['accept-encoding'] as string | undefined);
    if (encoding === null) return send(answer.body, vary);
    compressOnce(answer.body, encoding, sharedBytes)
      .then(
        (compressed) => send(compressed, [...vary, 'content-encoding', encoding]),
        () => send(answer.body, vary),
      )
      .catch(() => response.destroy());
  };
}

const TEXT = /^(text\/|application\/json)/;

/** Whether the page is text that never changes, so that it is compressed once. */
function isCompressible({ headers, body }: PageAnswer): boolean {
  const type = headers[headers.indexOf('content-type') + 1] ?? '';
  return isShared(body) && body.length > limits.compressedMinBytes && TEXT.test(type);
}

/** Returns the path of a target, decoded and without a trailing slash; '' if it cannot be decoded. */
function pathOf(target: string): string {
  const [path = ''] = target.split(/[?#]/, 1);
  try {
    return decodeURI(path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path);
  } catch {
    return '';
  }
}

function answerOf(page: () => PageAnswer, requestId: string) {
  try {
    return { answer: page(), code: null };
  } catch (cause) {
    const error = new LedgerError('internal', 'The page cannot be shown.');
    const body = Buffer.from(errorEnvelope(error, requestId));
    const answer = { status: statusOf(error.code).http, headers: ['content-type', JSON_TYPE], body };
    return { answer, code: error.code, cause };
  }
}
