import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { type ServerInterceptingCallInterface, status } from '@grpc/grpc-js';
import type { ErrorCode } from '../../domain/errors.ts';
import { limits } from '../../limits.ts';
import type { Connection, Connections } from './connections.ts';
import { requestIdHeader, type ThreadCall } from './frames.ts';
import { frameHeadBytes, MessageFraming } from './framing.ts';
import { RequestGate } from './request-gate.ts';
import type { GrpcMethod } from './thread-messages.ts';
import { unpack } from './unpacking.ts';

/** What a stream is made over. */
export interface CallStreamParts {
  readonly connections: Connections;
  /** Asks the main thread whether the caller of an unfinished request is let in. */
  admit(stream: CallStream): void;
  /** The stream has closed. */
  closed(stream: CallStream): void;
}

/**
 * One HTTP/2 stream of a call: what the node holds of its request and of its answers, and since when. grpc-js keeps a
 * message until it has ended, and an answer until it was taken, without any bound over all calls of a connection.
 */
export class CallStream {
  readonly stream: ServerHttp2Stream;
  readonly connection: Connection;
  /** null: a method that the thread serves itself, or none. */
  readonly method: GrpcMethod | null;
  #gate: RequestGate | null = null;
  /** As they came; once the call's handler has begun, the request id alone, if one was sent. */
  headers: IncomingHttpHeaders | null;
  /** That of grpc-js; there is none for what is no gRPC. */
  call: ServerInterceptingCallInterface | null = null;
  /** Where the sweep has it. */
  slot = -1;
  /** What the main thread answers; null before it was told of the call. */
  own: ThreadCall | null = null;
  readonly #encoding: string;
  readonly #parts: CallStreamParts;
  readonly #framing = new MessageFraming();
  /** As they came. */
  readonly #headerBytes: number;
  /** Of the request, beside what the call takes by itself. */
  #requestBytes = 0;
  #unfinishedBytes = 0;
  /** False: there are too many calls. */
  readonly #hasRoom: boolean;
  #pausedBytes = 0;
  #answerBytes = 0;
  /** When the request, or the message of a stream, began. */
  #beganMs: number;
  /** When an answer was last taken, or given while none waited. */
  #takenMs = 0;
  #answeredMs = 0;
  #isReceived = false;
  #isRefused = false;
  #isAnswered = false;
  #isClosed = false;
  #isAdmitted = false;
  #isAsked = false;
  #admitted: (() => void) | null = null;

  constructor(parts: CallStreamParts, stream: WatchedStream, headers: IncomingHttpHeaders, method: GrpcMethod | null) {
    this.#parts = parts;
    this.stream = stream;
    this.headers = headers;
    this.method = method;
    this.#beganMs = parts.connections.nowMs;
    // A stream that is there has a session until it closes.
    this.connection = parts.connections.of(stream.session as NonNullable<typeof stream.session>);
    this.#headerBytes = headerBytesOf(headers);
    this.#hasRoom = parts.connections.request(this.connection, this.#callBytes);
    const encoding = headers['grpc-encoding'];
    this.#encoding = encoding === undefined || encoding === 'identity' ? 'identity' : String(encoding);
    stream[callStreamKey] = this;
    stream.on('close', onClose);
    // grpc-js answers it with 415, and reads none of it.
    if (!isGrpc(headers)) this.answered();
    if (method === null) parts.connections.addStandard(this);
  }

  /** What the call takes by itself, with its headers. */
  get #callBytes(): number {
    return limits.grpcCallBytes + Math.max(0, this.#headerBytes - limits.grpcCallHeaderBytes);
  }

  displace(): void {
    this.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /** Whether nothing is to be done for it any more: it was refused or answered, or its caller has gone. */
  get isOver(): boolean {
    return this.#isRefused || this.#isAnswered || this.#isClosed;
  }

  /** Whether nothing can be sent any more. */
  get isAnswered(): boolean {
    return this.#isAnswered || this.#isClosed;
  }

  get #hasOneRequest(): boolean {
    return this.method !== null && this.method.kind !== 'bidi_streaming';
  }

  /** Of a method whose requests come one by one. */
  get gate(): RequestGate {
    this.#gate ??= new RequestGate();
    return this.#gate;
  }

  /** Bytes of the request came, which grpc-js is about to take. */
  arrived(chunk: Buffer): void {
    if (this.isOver) return;
    const framing = this.#framing;
    if (framing.unfinishedBytes === 0) this.#beganStreamMessage();
    const ended = framing.messages;
    framing.take(chunk);
    const hasRoom = this.#request(chunk.length + (framing.messages - ended) * limits.grpcMessageBytes);
    this.#unfinished(this.#hasOneRequest ? this.#requestBytes : framing.unfinishedBytes);
    if (framing.hasUnknownFlag) this.refuse(status.INTERNAL, 'invalid_argument', unknownFlag);
    else if (framing.hasCompressed && this.#encoding === 'identity')
      this.refuse(status.INTERNAL, 'invalid_argument', noEncoding);
    else if (this.method === null && framing.unfinishedBytes > limits.grpcStandardMessageMaxBytes)
      this.refuse(status.RESOURCE_EXHAUSTED, 'payload_too_large', standardTooLarge);
    else if (this.#isBeyond(hasRoom)) return;
    else if (this.#requestBytes > limits.grpcUnadmittedBytes) this.#askOnce();
  }

  /** The time of each message of a stream counts by itself; that of a single request from its headers. */
  #beganStreamMessage(): void {
    if (!this.#hasOneRequest) this.#beganMs = this.#parts.connections.nowMs;
  }

  #request(bytes: number): boolean {
    this.#requestBytes += bytes;
    return this.#parts.connections.request(this.connection, bytes);
  }

  /** What has begun and not ended, of a single request until it was handed on. */
  #unfinished(bytes: number): void {
    this.connection.unfinishedBytes += bytes - this.#unfinishedBytes;
    this.#unfinishedBytes = bytes;
  }

  /** grpc-js has made a call of it. */
  begin(call: ServerInterceptingCallInterface): void {
    this.call = call;
    if (!this.#hasRoom) this.#refuseForRoom();
    // Streams of health and reflection are few, and answered before a refusal would be.
    else if (this.method !== null && this.#headerBytes > limits.headersMaxBytes)
      this.refuse(status.RESOURCE_EXHAUSTED, 'invalid_argument', headersTooLarge);
  }

  /** Whether its connection holds too much, for which it is refused then. `hasRoom`: so does not the whole port. */
  #isBeyond(hasRoom: boolean): boolean {
    const { connections } = this.#parts;
    const { connectionRequestBytes } = connections.bounds;
    if (this.connection.unfinishedBytes > connectionRequestBytes) {
      connections.refused(this.connection);
      this.refuse(status.UNAVAILABLE, 'overloaded', requestsBeyond(connectionRequestBytes), requestBound);
    } else if (!hasRoom) this.#refuseForRoom();
    return this.#isRefused;
  }

  /** The port is full, and its connection holds more than its part. */
  #refuseForRoom(): void {
    this.#parts.connections.refused(this.connection);
    this.refuse(status.UNAVAILABLE, 'overloaded', tooManyCalls, budgetBound);
  }

  /** Unpacks a compressed message, of a single request only when its caller was let in. Throws UnpackError. */
  async unpack(packed: Buffer, encoding: string): Promise<Buffer> {
    if (this.#hasOneRequest && !this.#isAdmitted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#admitted = resolve;
      this.#askOnce();
      await promise;
    }
    const max = this.method === null ? limits.grpcStandardMessageMaxBytes : limits.grpcReceiveMaxBytes;
    const message = unpack(packed, encoding, max);
    if (this.#isClosed) return message;
    const hasRoom = this.#request(message.length - packed.length);
    if (this.#hasOneRequest) this.#unfinished(this.#requestBytes);
    if (!this.#isBeyond(hasRoom)) return message;
    this.#request(packed.length - message.length);
    if (this.#hasOneRequest) this.#unfinished(this.#requestBytes);
    return Buffer.alloc(0);
  }

  #askOnce(): void {
    if (this.#isAsked || !this.#hasOneRequest) return;
    this.#isAsked = true;
    this.#parts.admit(this);
  }

  /** The caller of a single request was let in: its message is read to its end. */
  admitted(): void {
    this.#isAdmitted = true;
    this.#admitted?.();
  }

  /**
   * The main thread was told of the call. Texts of headers lie outside of the heap: kept, they cost most of a full
   * collection.
   */
  begun(own: ThreadCall): void {
    this.own = own;
    const requestId = this.headers?.[requestIdHeader];
    this.headers = requestId === undefined ? null : { [requestIdHeader]: requestId };
  }

  /** A single request is there, and is held by its handler from here on. */
  received(): void {
    this.#isReceived = true;
    this.#request(-this.#requestBytes);
    this.#unfinished(0);
  }

  /** A message of a stream was handed on, or dropped. */
  handedOn(messageBytes: number): void {
    const held = Math.min(messageBytes + frameHeadBytes + limits.grpcMessageBytes, this.#requestBytes);
    this.#request(-held);
  }

  /** Answers the call with an error. What comes of its request meanwhile is not read. */
  refuse(code: number, reason: ErrorCode, details: string, bound = ''): void {
    if (this.isOver || this.call === null) return;
    this.refused();
    const refusal: RefusedStatusObject = { code, details, metadata: null, reason, bound };
    this.call.sendStatus(refusal);
  }

  /** It is being answered with an error: what comes of its request is not read. */
  refused(): void {
    this.#isRefused = true;
    this.stream.pause();
  }

  /** An answer is about to be sent; false: the connection has left too many untaken, and this one was dealt with. */
  answers(bytes: number): boolean {
    const { connections } = this.#parts;
    const { bounds } = connections;
    if (this.connection.answerBytes + bytes > bounds.connectionAnswerBytes && this.connection.answerBytes > 0) {
      connections.refused(this.connection);
      // What was done must not be told as a refusal; and of a stream, answers were sent before.
      if (this.method?.kind === 'unary' && this.method.changesState) this.connection.end();
      else if (this.method !== null && this.method.kind !== 'unary') this.connection.end();
      else this.refuse(status.UNAVAILABLE, 'overloaded', answersBeyond(bounds.connectionAnswerBytes), answerBound);
      return false;
    }
    if (this.#answerBytes === 0) this.#takenMs = connections.nowMs;
    this.#answer(bytes);
    return true;
  }

  /** So much of the answers was taken by HTTP/2. */
  taken(bytes: number): void {
    if (this.#isClosed) return;
    this.#takenMs = this.#parts.connections.nowMs;
    this.#answer(-bytes);
  }

  #answer(bytes: number): void {
    this.#answerBytes += bytes;
    this.#parts.connections.answer(
      this.connection,
      this.method === null || this.method.kind === 'unary' ? 'answer' : 'stream',
      bytes,
    );
  }

  /** Whether the whole request is there, or was refused before. */
  get isReceived(): boolean {
    return this.#isReceived;
  }

  /** The status is on its way. */
  answered(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#answeredMs = this.#parts.connections.nowMs;
  }

  /** Ends what has taken too long. */
  look(nowMs: number): void {
    this.#lookAtPaused();
    if (this.#answerBytes > 0 && nowMs - this.#takenMs > limits.grpcAnswerTimeoutMs) this.connection.end();
    if (this.#isAnswered) this.#lookAtAnswered(nowMs);
    else if (!this.#isReceived && !this.isOver && this.call !== null) this.#lookAtRequest(nowMs);
  }

  /**
   * Its trailers must be taken, and its request must end. A status without an answer before it is finished for Node
   * before anything of it was sent, and a reset waits for the socket too: what is still open then is not taken.
   */
  #lookAtAnswered(nowMs: number): void {
    const ms = nowMs - this.#answeredMs;
    if (ms > limits.grpcAnswerTimeoutMs) this.connection.end();
    else if (ms > limits.grpcAnsweredLingerMs && this.stream.writableFinished) this.stream.close();
  }

  #lookAtRequest(nowMs: number): void {
    const hasBegun = this.#hasOneRequest || this.#framing.unfinishedBytes > 0;
    // A message that the node does not read on is not its caller's fault.
    if (!hasBegun || (this.stream.isPaused() && !this.#hasOneRequest)) this.#beganMs = nowMs;
    const ageMs = nowMs - this.#beganMs;
    if (ageMs > limits.grpcMessageTimeoutMs) this.refuse(status.UNAVAILABLE, 'unavailable', messageTooLate);
    else if (ageMs > limits.grpcUnadmittedMs) this.#askOnce();
  }

  #lookAtPaused(): void {
    const bytes = this.#isClosed ? 0 : this.stream.readableLength;
    if (bytes === this.#pausedBytes) return;
    this.#parts.connections.paused(this.connection, bytes - this.#pausedBytes);
    this.#pausedBytes = bytes;
  }

  /** The stream has closed. */
  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.method === null) this.#parts.connections.removeStandard(this);
    this.#request(-this.#requestBytes);
    this.#unfinished(0);
    this.#parts.connections.request(this.connection, -this.#callBytes);
    this.#answer(-this.#answerBytes);
    this.#lookAtPaused();
    this.#parts.closed(this);
  }
}

/** A key that streams are asked for their CallStream by. */
export const callStreamKey = Symbol('call stream');
export type WatchedStream = ServerHttp2Stream & { [callStreamKey]?: CallStream };

/** One for all streams: a function for each is memory for each. */
function onClose(this: WatchedStream): void {
  this[callStreamKey]?.closed();
}

/** Whether grpc-js makes a call of what has these headers. */
export function isGrpc(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.startsWith('application/grpc') === true;
}

/** Of each header 32 bytes more than its texts have, as HTTP/2 counts them (RFC 9113, section 6.5.2). */
function headerBytesOf(headers: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const name in headers) {
    const value = headers[name] ?? '';
    bytes += name.length + (typeof value === 'string' ? value : value.join()).length + 32;
  }
  return bytes;
}

/** A status of which the code of the service is known. */
export type RefusedStatusObject = Parameters<ServerInterceptingCallInterface['sendStatus']>[0] & Refusal;

/** Why a call is refused, in words of the service. */
export interface Refusal {
  readonly reason: ErrorCode;
  /** The setting that the bound comes from; '' where it is none. */
  readonly bound: string;
}

const budgetBound = 'MEMORY_BUDGET_MIB';
const requestBound = 'GRPC_CONNECTION_REQUEST_MIB';
const answerBound = 'GRPC_CONNECTION_ANSWER_MIB';

/** Sentences of refusals. */
const tooManyCalls =
  'Calls of this connection hold more than its part of what the node has for gRPC; nothing was written: retry in a moment.';
const headersTooLarge = `A call may have headers of ${limits.headersMaxBytes} bytes together.`;
const unknownFlag = 'Each message must begin with a flag byte of 0 or 1.';
const noEncoding = 'A compressed message needs the header grpc-encoding, which says how it is compressed.';
const standardTooLarge = `A message to this method may have ${limits.grpcStandardMessageMaxBytes} bytes.`;
const timeoutS = limits.grpcMessageTimeoutMs / 1000;
const messageTooLate = `A message must end within ${timeoutS} s; nothing was written: send it faster, or a smaller one.`;

function requestsBeyond(bytes: number): string {
  return `Messages that a connection has begun and not ended may hold ${bytes} bytes; nothing was written: end some first.`;
}

function answersBeyond(bytes: number): string {
  return `Answers that a connection has not taken may hold ${bytes} bytes: take them, and call again.`;
}
