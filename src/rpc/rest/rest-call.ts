import type { IncomingMessage } from 'node:http';
import type { Message } from '@bufbuild/protobuf';
import { LedgerError } from '../../domain/errors.ts';
import { type JsonNode, memberOf, parseJsonBody } from '../../domain/json/json.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { EntityRequest } from '../../service/calls/call.ts';
import { encodedOnce, isShared } from '../../service/calls/shared-answer.ts';
import { outOfMemoryBudget } from '../../service/limits/out-of-memory-budget.ts';
import type { Decoded, RestEquivalent, UnaryCall } from '../call/incoming-call.ts';
import { jsonMembers, messageOfTexts } from '../call/readable-request.ts';
import { filledPath } from '../call/rest-equivalent.ts';
import type { RunningCall } from '../call/running-call.ts';
import { statusOf } from '../call/status.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { RestRoute } from '../endpoints/routes.ts';
import { dropBody, endAfterUnreadBody, hasBody, readBody } from '../http/body.ts';
import { type ContentEncoding, compressAnswer, encodingFor } from '../http/compression.ts';
import { errorEnvelope } from '../http/error-envelope.ts';
import type { HttpHandlerParts } from '../http/handler-parts.ts';
import { HttpCall } from '../http/http-call.ts';
import type { HttpResponse } from '../http/response.ts';
import { jsonHeaders, NO_SNIFF } from '../http/server.ts';
import { queryParameters, type RestInput, requestReader } from './decode.ts';
import { answerWriter } from './encode.ts';
import { type Parameter, parametersOf } from './query.ts';
import { ignoredParametersValue, isStrict, unknownParameter, unknownParameters } from './unknown-parameters.ts';

const JSON_MEDIA_TYPE = /^application\/json\s*(?:;\s*(?:charset=("?)utf-8\1\s*)?)*$/i;

/** A route with its endpoint, its compiled reader of requests and writer of answers. Made once. */
export interface RestEntry extends RestRoute {
  readonly endpoint: Endpoint;
  readonly read: (input: RestInput) => Message;
  readonly parameters: ReturnType<typeof queryParameters>;
  readonly write: (answer: object) => string | null;
}

export function restEntry(route: RestRoute, endpoint: Endpoint): RestEntry {
  const parameters = queryParameters(route);
  return { ...route, endpoint, read: requestReader(route), parameters, write: answerWriter(route) };
}

const nothing = Buffer.alloc(0);

export class RestCall extends HttpCall implements UnaryCall {
  readonly transport = 'rest';
  readonly timeoutMs = Number.POSITIVE_INFINITY;
  protected readonly entry: RestEntry;
  readonly #cors: readonly string[];
  readonly #params: Readonly<Record<string, string>>;
  #body: Buffer | null = null;
  /** SHA-256, in hex, of a body that the route does not take. */
  #droppedHash: string | null = null;
  /** Bytes if many calls send them. */
  #answer: string | Buffer | null = null;
  /** The answer in #encoding; null if it is sent as it is. */
  #compressed: Buffer | null = null;
  #encoding: ContentEncoding | null = null;

  constructor(
    parts: HttpHandlerParts,
    request: IncomingMessage,
    response: HttpResponse,
    entry: RestEntry,
    params: Readonly<Record<string, string>>,
  ) {
    super(parts, request, response);
    this.entry = entry;
    this.#cors = parts.cors.answer(request.headers.origin);
    this.#params = params;
  }

  receive(): Promise<void> | undefined {
    const encoding = this.header('content-encoding');
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      const details = { header: 'Content-Encoding' };
      throw new LedgerError('unsupported_media_type', 'Request bodies must not be compressed.', details);
    }
    return hasBody(this.request) ? this.#receive() : undefined;
  }

  async #receive(): Promise<void> {
    if (this.entry.hasBody) this.#body = await readBody(this.request, this.response, this.call);
    else this.#droppedHash = await dropBody(this.request, this.response, this.call);
  }

  get received(): Uint8Array {
    return this.#body ?? nothing;
  }

  signedRequest(): Omit<EntityRequest, 'timestamp'> {
    const bodyHash = this.#droppedHash ?? sha256Hex(this.#body ?? '');
    return { method: this.request.method ?? '', path: this.request.url ?? '', bodyHash };
  }

  decode(): Decoded {
    const parameters = parametersOf(this.query.slice(1));
    this.#tellUnknownParameters(parameters);
    const body = this.#readJson();
    const { read, endpoint } = this.entry;
    const message = read({ pathParams: this.#params, parameters, body });
    const json = new Map<string, JsonNode>();
    if (body?.kind === 'object') {
      for (const { name } of endpoint.rawFields) {
        const node = memberOf(body, name);
        if (node !== undefined) json.set(name, node);
      }
    }
    return { message, json };
  }

  /** A misspelt filter would otherwise select everything without a word. */
  #tellUnknownParameters(parameters: readonly Parameter[]): void {
    const strict = isStrict(this.header('x-strict'));
    if (parameters.length === 0) return;
    const { parameters: known } = this.entry;
    const [first, ...others] = unknownParameters(known, parameters);
    if (first === undefined) return;
    if (strict) throw unknownParameter(first, [...known.keys()]);
    this.call?.headers.push(['x-ignored-parameters', ignoredParametersValue([first, ...others])]);
  }

  readable(error: LedgerError): Message {
    const { method, hasBody } = this.entry;
    const members = this.#body !== null && this.#isJson ? jsonMembers(this.#body, error) : {};
    const query = new URLSearchParams(hasBody ? '' : this.query);
    return messageOfTexts(method.input, ({ name }) => this.#params[name] ?? members[name] ?? query.get(name));
  }

  get #isJson(): boolean {
    return JSON_MEDIA_TYPE.test(this.header('content-type') ?? '');
  }

  #readJson(): JsonNode | null {
    if (this.#body === null || this.#body.length === 0) return null;
    if (!this.#isJson) {
      const message = 'A request body must come with Content-Type: application/json.';
      const details = { header: 'Content-Type', expected: 'application/json' };
      throw new LedgerError('unsupported_media_type', message, details);
    }
    return parseJsonBody(this.#body);
  }

  get query(): string {
    const url = this.request.url ?? '';
    const start = url.indexOf('?');
    return start < 0 || start === url.length - 1 ? '' : url.slice(start);
  }

  equivalent(_message: Message | null): RestEquivalent {
    return { verb: this.entry.httpMethod, path: filledPath(this.entry, (name) => this.#params[name] ?? '') };
  }

  encode(answer: object): Promise<void> | void {
    this.#answer = this.#written(answer);
    const bytes = this.#answer?.length ?? 0;
    // A call that changes state is answered whatever the answer's size: a refusal would say that nothing was written.
    const isLarge = bytes > limits.smallAnswerMaxBytes && !this.#isNotModified;
    const mayRefuse = isLarge && !this.entry.endpoint.changesState;
    if (mayRefuse && !this.response.holdAnswer(bytes)) throw outOfMemoryBudget();
    if (this.#answer !== null && this.#isCompressible) return this.#compress(this.#answer);
  }

  #written(answer: object): string | Buffer | null {
    const { write } = this.entry;
    if (!isShared(answer)) return write(answer);
    return encodedOnce(answer, 'json', () => {
      const text = write(answer);
      return text === null ? null : Buffer.from(text);
    });
  }

  /** Whether the answer is compressed for a caller that accepts it. */
  get #isCompressible(): boolean {
    return !this.entry.endpoint.hasSecret && (this.#answer?.length ?? 0) > limits.compressedMinBytes;
  }

  #compress(body: string | Buffer): Promise<void> | void {
    const encoding = encodingFor(this.header('accept-encoding'));
    if (this.#isNotModified) {
      // Nothing is sent, but the tag is that of the answer which would be.
      this.#encoding = encoding;
      return;
    }
    const compressing = encoding === null ? null : compressAnswer(this.response, body, encoding);
    return compressing?.then((compressed) => {
      this.#compressed = compressed;
      this.#encoding = compressed === null ? null : encoding;
    });
  }

  succeed(call: RunningCall): void {
    const body = this.#answer;
    const headers = this.headers(call);
    for (const [name, value] of call.answerHeaders) headers.push(name, name === 'etag' ? this.#etag(value) : value);
    if (this.#isCompressible) headers.push('vary', 'Accept-Encoding');
    if (call.replayed) headers.push('idempotent-replayed', 'true');
    if (!call.answerHeaders.some(([name]) => name === 'cache-control')) headers.push('cache-control', 'no-store');
    if (this.#isNotModified) {
      this.response.writeHead(304, headers).end();
    } else if (body === null) {
      this.response.writeHead(204, headers).end();
    } else {
      const sent = this.#compressed ?? body;
      if (this.#encoding !== null) headers.push('content-encoding', this.#encoding);
      headers.push(...jsonHeaders(sent));
      this.response.writeHead(200, headers).end(sent);
    }
  }

  /** A strong tag names one sequence of bytes, so the compressed one has a weak tag (RFC 9110, section 8.8.1). */
  #etag(strong: string): string {
    return this.#encoding === null ? strong : `W/${strong}`;
  }

  /** Whether If-None-Match names the answer's ETag, by the weak comparison (RFC 9110, section 13.1.2). */
  get #isNotModified(): boolean {
    const known = this.header('if-none-match');
    const etag = this.call?.answerHeaders.find(([name]) => name === 'etag')?.[1];
    if (known === undefined || etag === undefined || this.entry.httpMethod !== 'GET') return false;
    const opaque = (tag: string): string => tag.trim().replace(/^W\//, '');
    return known.trim() === '*' || known.split(',').some((tag) => opaque(tag) === opaque(etag));
  }

  fail(call: RunningCall, error: LedgerError): void {
    const { http } = statusOf(error.code);
    const headers = this.headers(call);
    if (http === 401) headers.push('www-authenticate', 'Bearer');
    if (http === 503 && !call.headers.some(([name]) => name === 'retry-after')) headers.push('retry-after', '1');
    const body = errorEnvelope(error, call.requestId);
    headers.push('cache-control', 'no-store', ...jsonHeaders(body));
    endAfterUnreadBody(this.request, this.response, http, headers, body);
  }

  protected headers(call: RunningCall): string[] {
    const headers: string[] = ['x-request-id', call.requestId, ...NO_SNIFF, ...this.#cors];
    for (const [name, value] of call.headers) headers.push(name, value);
    return headers;
  }
}
