import type { IncomingMessage } from 'node:http';
import { create, fromJson, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { type Code, ConnectError, type HandlerContext } from '@connectrpc/connect';
import type { LedgerError } from '../../domain/errors.ts';
import { parseJsonBody } from '../../domain/json/json.ts';
import { sha256Hex } from '../../domain/keys/hash.ts';
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.ts';
import { limits } from '../../runtime/limits/limits.ts';
import type { EntityRequest } from '../../service/calls/call.ts';
import { encodedOnce } from '../../service/calls/shared-answer.ts';
import { outOfMemoryBudget } from '../../service/limits/out-of-memory-budget.ts';
import { rpcError } from '../call/error-info.ts';
import type { Decoded, RestEquivalent, StreamCall, UnaryCall } from '../call/incoming-call.ts';
import { readJsonFields, readMessage } from '../call/json-fields.ts';
import { binaryTexts, jsonMembers, messageOfTexts } from '../call/readable-request.ts';
import { equivalentOf } from '../call/rest-equivalent.ts';
import type { RunningCall } from '../call/running-call.ts';
import { statusOf } from '../call/status.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { encodeAnswer } from '../grpc/main/encode.ts';
import { readBody } from '../http/body.ts';
import type { HttpHandlerParts } from '../http/handler-parts.ts';
import { HttpCall } from '../http/http-call.ts';
import type { HttpResponse } from '../http/response.ts';
import { type ConnectFormat, unpackMessage } from './body.ts';
import { readProtobufJson } from './decode.ts';

/**
 * One Connect or gRPC-Web call with a single request. It reads its body itself, so that the credential is checked
 * before the body and JSON is checked on the raw bytes. connect-es frames the answers and encodes the errors.
 */
export class ConnectCall extends HttpCall implements UnaryCall, StreamCall {
  readonly transport = 'connect';
  readonly query = '';
  readonly timeoutMs: number;
  readonly #endpoint: Endpoint;
  readonly #format: ConnectFormat;
  readonly #context: HandlerContext;
  readonly #answers = new AnswerQueue();
  #message: Buffer = Buffer.alloc(0);

  constructor(
    parts: HttpHandlerParts,
    request: IncomingMessage,
    response: HttpResponse,
    endpoint: Endpoint,
    format: ConnectFormat,
    context: HandlerContext,
  ) {
    super(parts, request, response);
    this.#endpoint = endpoint;
    this.#format = format;
    this.#context = context;
    response.isUnary = endpoint.method.methodKind === 'unary';
    this.timeoutMs = context.timeoutMs() ?? Number.POSITIVE_INFINITY;
    // connect-es then takes no more answers, but does not tell a sender that waits for it.
    response.once('close', () => this.#answers.stop());
  }

  get answers(): AsyncIterable<object> {
    return this.#answers;
  }

  async receive(): Promise<void> {
    const body = await readBody(this.request, this.response, this.call);
    const message = await this.#unpack(body);
    const unpackedBytes = Math.max(0, message.length - body.length);
    if (!this.response.holdRequest(unpackedBytes, true)) throw outOfMemoryBudget();
    this.#message = message;
  }

  #unpack(body: Buffer): Buffer | Promise<Buffer> {
    const { call } = this;
    if (call === null) throw new Error('a body is received for a call that has begun');
    return unpackMessage(this.#format, this.header(this.#format.encodingHeader), body, call);
  }

  get received(): Uint8Array {
    return this.#message;
  }

  /** The caller sent no REST request: the signature covers POST, the method's path and the message as received. */
  signedRequest(): Omit<EntityRequest, 'timestamp'> {
    return { method: 'POST', path: this.#endpoint.rpcPath, bodyHash: sha256Hex(this.#message) };
  }

  decode(): Decoded {
    const message = this.#format.json ? this.#readJson() : readMessage(this.#endpoint, this.#message);
    return readJsonFields(this.#endpoint, message);
  }

  readable(error: LedgerError): Message {
    const { input } = this.#endpoint.method;
    if (!this.#format.json) return binaryTexts(input, this.#message);
    const members = jsonMembers(this.#message, error);
    return messageOfTexts(input, ({ jsonName, name }) => members[jsonName] ?? members[name]);
  }

  #readJson(): Message {
    const { input } = this.#endpoint.method;
    // An empty body is an empty message, as in REST.
    if (this.#message.length === 0) return fromJson(input, {});
    return readProtobufJson(input, parseJsonBody(this.#message));
  }

  equivalent(message: Message | null): RestEquivalent {
    return equivalentOf(this.#endpoint, message);
  }

  /**
   * Throws `overloaded` for a large answer of a read if the node's answers hold too much. connect-es encodes it later.
   */
  encode(answer: object): void {
    if (this.#endpoint.changesState || this.response.hasRoomForAnswers) return;
    const { output } = this.#endpoint.method;
    const { length } = encodedOnce(answer, 'protobuf', () => encodeAnswer(output, answer));
    if (length > limits.smallAnswerMaxBytes && !this.response.holdAnswer(length)) throw outOfMemoryBudget();
  }

  succeed(call: RunningCall, answer: object): void {
    void this.send(call, answer);
    this.end(call);
  }

  send(call: RunningCall, answer: object): Promise<void> | undefined {
    this.#setHeaders(call);
    const { output } = this.#endpoint.method;
    // connect-es makes the bytes itself, from the message.
    const message = encodedOnce(answer, 'message', () => create(output, answer as MessageInitShape<typeof output>));
    return this.#answers.push(message);
  }

  end(call: RunningCall): void {
    this.#setHeaders(call);
    this.#answers.end(null);
  }

  fail(call: RunningCall, error: LedgerError): void {
    // connect-es sends the metadata of an error as headers of a unary answer, and behind the messages of a stream.
    if (this.#endpoint.method.methodKind !== 'unary') this.#setHeaders(call);
    const metadata = new Headers({ 'x-request-id': call.requestId });
    for (const [name, value] of call.headers) metadata.set(name, value);
    const { message, info } = rpcError(error, call.requestId);
    const detail = { desc: ErrorInfoSchema, value: info };
    // Connect's codes have the same numbers as gRPC's.
    const code: Code = statusOf(error.code).grpc;
    this.#answers.end(new ConnectError(message, code, metadata, [detail]));
  }

  #setHeaders(call: RunningCall): void {
    const { responseHeader } = this.#context;
    if (responseHeader.has('x-request-id')) return;
    responseHeader.set('x-request-id', call.requestId);
    for (const [name, value] of [...call.headers, ...call.answerHeaders]) responseHeader.set(name, value);
    if (call.replayed) responseHeader.set('idempotent-replayed', 'true');
  }
}

/** Hands answers from the pipeline, which pushes, to connect-es, which pulls, one at a time. */
class AnswerQueue implements AsyncIterable<object> {
  readonly #waiting: object[] = [];
  #wake: (() => void) | null = null;
  #taken: (() => void) | null = null;
  #ended = false;
  #error: Error | null = null;

  /** Resolves once the answer was taken, or no more answers are taken. */
  push(answer: object): Promise<void> {
    if (this.#ended) return Promise.resolve();
    this.#waiting.push(answer);
    this.#wake?.();
    return new Promise((resolve) => {
      this.#taken = resolve;
    });
  }

  stop(): void {
    this.end(null);
    this.#taken?.();
  }

  end(error: Error | null): void {
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<object> {
    try {
      for (;;) {
        const answer = this.#waiting.shift();
        if (answer !== undefined) {
          yield answer;
          this.#taken?.();
        } else if (this.#ended) {
          if (this.#error !== null) throw this.#error;
          return;
        } else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
      }
    } finally {
      // The caller has stopped reading. A sender that waits goes on and finds the call aborted.
      this.#taken?.();
    }
  }
}
