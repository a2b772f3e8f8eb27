import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { type ServerInterceptingCallInterface, status } from '@grpc/grpc-js';
import type { ErrorCode } from '../../../domain/errors.ts';
import { limits } from '../../../runtime/limits/limits.ts';
import type { Connection, Connections } from '../connections.ts';
import { requestIdHeader, type WorkerCall } from '../frames.ts';
import type { GrpcMethod } from '../worker-messages.ts';
import { frameHeadBytes, MessageFraming } from './framing.ts';
import { RequestGate } from './request-gate.ts';
import { unpack } from './unpacking.ts';

interface CallStreamParts {
  readonly connections: Connections;
  /** Asks the main thread whether it admits the caller of an unfinished request. */
  admit(stream: CallStream): void;
  closed(stream: CallStream): void;
}

/**
 * One HTTP/2 stream of a call: what the node holds for its request and its answers, and since when. grpc-js keeps a
 * message until it has ended and an answer until it is taken, without a bound over all calls of a connection.
 */
export class CallStream {
  readonly stream: ServerHttp2Stream;
  readonly connection: Connection;
  /** null for a method that the worker serves itself, and for an unknown method. */
  readonly method: GrpcMethod | null;
  #gate: RequestGate | null = null;
  /** Once the call's handler has begun, only the request id, if one was sent; null otherwise. */
  headers: IncomingHttpHeaders | null;
  /** Stays null if the request is not gRPC. */
  call: ServerInterceptingCallInterface | null = null;
  slot = -1;
  /** null until the main thread knows the call. */
  workerCall: WorkerCall | null = null;
  readonly #encoding: string;
  readonly #parts: CallStreamParts;
  readonly #framing = new MessageFraming();
  readonly #headerBytes: number;
  /** Without the fixed bytes of the call. */
  #requestBytes = 0;
  #unfinishedBytes = 0;
  readonly #hasRoom: boolean;
  #pausedBytes = 0;
  #answerBytes = 0;
  /** Of the request, or of the current message of a stream (monotonic, ms). */
  #beganMs: number;
  /** When an answer was last taken, or sent while none waited (monotonic, ms). */
  #takenMs = 0;
  #answeredMs = 0;
  #isReceived = false;
  #isServed = false;
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
    // A stream that has not closed has a session.
    this.connection = parts.connections.of(stream.session as NonNullable<typeof stream.session>);
    this.#headerBytes = headerBytesOf(headers);
    this.#hasRoom = parts.connections.request(this.connection, this.#callBytes);
    const encoding = headers['grpc-encoding'];
    this.#encoding = encoding === undefined || encoding === 'identity' ? 'identity' : String(encoding);
    stream[callStreamKey] = this;
    stream.on('close', onClose);
    // grpc-js answers it with 415 and does not read it.
    if (!isGrpc(headers)) this.answered();
    if (method === null) parts.connections.standard.add(this.connection, this);
    else parts.connections.openCalls += 1;
  }

  get #callBytes(): number {
    return limits.grpcCallBytes + Math.max(0, this.#headerBytes - limits.grpcCallHeaderBytes);
  }

  displace(): void {
    this.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  /** Refused or answered, or its caller has gone. */
  get isOver(): boolean {
    return this.#isRefused || this.#isAnswered || this.#isClosed;
  }

  get isAnswered(): boolean {
    return this.#isAnswered || this.#isClosed;
  }

  get #hasOneRequest(): boolean {
    return this.method !== null && this.method.kind !== 'bidi_streaming';
  }

  get gate(): RequestGate {
    this.#gate ??= new RequestGate();
    return this.#gate;
  }

  /** Counts bytes of the request before grpc-js gets them. */
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

  /** Each message of a stream has its own time limit. That of a single request counts from its headers. */
  #beganStreamMessage(): void {
    if (!this.#hasOneRequest) this.#beganMs = this.#parts.connections.nowMs;
  }

  #request(bytes: number): boolean {
    this.#requestBytes += bytes;
    return this.#parts.connections.request(this.connection, bytes);
  }

  /** A single request counts until it is handed on. */
  #unfinished(bytes: number): void {
    this.connection.unfinishedBytes += bytes - this.#unfinishedBytes;
    this.#unfinishedBytes = bytes;
  }

  begin(call: ServerInterceptingCallInterface): void {
    this.call = call;
    if (!this.#hasRoom) this.#refuseForRoom();
    // Calls of health and reflection are bounded by their number.
    else if (this.method !== null && this.#headerBytes > limits.headersMaxBytes)
      this.refuse(status.RESOURCE_EXHAUSTED, 'invalid_argument', headersTooLarge);
  }

  /** Refuses the call if its connection holds too much, or if the port does. Returns whether it is refused. */
  #isBeyond(hasRoom: boolean): boolean {
    const { connections } = this.#parts;
    const { connectionRequestBytes } = connections.bounds;
    if (this.connection.unfinishedBytes > connectionRequestBytes) {
      connections.refused(this.connection);
      this.refuse(status.UNAVAILABLE, 'overloaded', requestsBeyond(connectionRequestBytes), requestBound);
    } else if (!hasRoom) this.#refuseForRoom();
    return this.#isRefused;
  }

  #refuseForRoom(): void {
    this.#parts.connections.refused(this.connection);
    this.refuse(status.UNAVAILABLE, 'overloaded', tooManyCalls, budgetBound);
  }

  /** A single request is decompressed only once its caller is admitted. Throws UnpackError. */
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

  admitted(): void {
    this.#isAdmitted = true;
    this.#admitted?.();
  }

  /**
   * The main thread knows the call. The headers are dropped: their strings lie outside of the heap, and keeping them
   * costs most of a full collection.
   */
  begun(workerCall: WorkerCall): void {
    this.workerCall = workerCall;
    const requestId = this.headers?.[requestIdHeader];
    this.headers = requestId === undefined ? null : { [requestIdHeader]: requestId };
  }

  /** From here on its handler holds the request. */
  received(): void {
    this.#isReceived = true;
    this.#isServed = true;
    this.connection.served += 1;
    this.#request(-this.#requestBytes);
    this.#unfinished(0);
  }

  /** A message of a stream was handed on or dropped. */
  handedOn(messageBytes: number): void {
    const held = Math.min(messageBytes + frameHeadBytes + limits.grpcMessageBytes, this.#requestBytes);
    this.#request(-held);
  }

  /** The rest of the request is not read. */
  refuse(code: number, reason: ErrorCode, details: string, bound = ''): void {
    if (this.isOver || this.call === null) return;
    this.refused();
    const refusal: RefusedStatus = { code, details, metadata: null, reason, bound };
    this.call.sendStatus(refusal);
  }

  refused(): void {
    this.#isRefused = true;
    this.stream.pause();
  }

  /**
   * Counts an answer before it is sent. Returns false if the connection has left too many untaken: the call was refused
   * or the connection ended.
   */
  answers(bytes: number): boolean {
    const { connections } = this.#parts;
    const { bounds } = connections;
    if (this.connection.answerBytes + bytes > bounds.connectionAnswerBytes && this.connection.answerBytes > 0) {
      connections.refused(this.connection);
      // A call that has changed state must not be reported as refused, and a stream has sent answers before.
      if (this.method?.kind === 'unary' && this.method.changesState) this.connection.end();
      else if (this.method !== null && this.method.kind !== 'unary') this.connection.end();
      else this.refuse(status.UNAVAILABLE, 'overloaded', answersBeyond(bounds.connectionAnswerBytes), answerBound);
      return false;
    }
    if (this.#answerBytes === 0) this.#takenMs = connections.nowMs;
    this.#answer(bytes);
    return true;
  }

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

  get isReceived(): boolean {
    return this.#isReceived;
  }

  answered(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#endServed();
    this.#answeredMs = this.#parts.connections.nowMs;
  }

  #endServed(): void {
    if (!this.#isServed) return;
    this.#isServed = false;
    this.connection.served -= 1;
  }

  /** Ends what has taken too long. Called by the sweep. */
  look(nowMs: number): void {
    this.#lookAtPaused();
    if (this.#answerBytes > 0 && nowMs - this.#takenMs > limits.grpcAnswerTimeoutMs) this.connection.end();
    if (this.#isAnswered) this.#lookAtAnswered(nowMs);
    else if (!this.#isReceived && !this.isOver && this.call !== null) this.#lookAtRequest(nowMs);
  }

  /**
   * A stream that is still open after the timeout was not taken by the client: for Node, a status is finished before
   * any byte of it was sent, and a reset waits for the socket too.
   */
  #lookAtAnswered(nowMs: number): void {
    const ms = nowMs - this.#answeredMs;
    if (ms > limits.grpcAnswerTimeoutMs) this.connection.end();
    else if (ms > limits.grpcAnsweredLingerMs && this.stream.writableFinished) this.stream.close();
  }

  #lookAtRequest(nowMs: number): void {
    const hasBegun = this.#hasOneRequest || this.#framing.unfinishedBytes > 0;
    // It is not the caller's fault if the node does not read a message on.
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

  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (this.method === null) this.#parts.connections.standard.remove(this);
    else this.#parts.connections.openCalls -= 1;
    this.#endServed();
    this.#request(-this.#requestBytes);
    this.#unfinished(0);
    this.#parts.connections.request(this.connection, -this.#callBytes);
    this.#answer(-this.#answerBytes);
    this.#lookAtPaused();
    this.#parts.closed(this);
  }
}

export const callStreamKey = Symbol('call stream');
export type WatchedStream = ServerHttp2Stream & { [callStreamKey]?: CallStream };

/** One function for all streams: one for each stream would cost memory for each. */
function onClose(this: WatchedStream): void {
  this[callStreamKey]?.closed();
}

export function isGrpc(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.startsWith('application/grpc') === true;
}

/** The size of headers as HTTP/2 counts it: 32 bytes per header beyond its name and value (RFC 9113, section 6.5.2). */
function headerBytesOf(headers: IncomingHttpHeaders): number {
  let bytes = 0;
  for (const name in headers) {
    const value = headers[name] ?? '';
    bytes += name.length + (typeof value === 'string' ? value : value.join()).length + 32;
  }
  return bytes;
}

export type Status = Parameters<ServerInterceptingCallInterface['sendStatus']>[0];

/** A status that says in terms of the service why a call is refused. */
export type RefusedStatus = Status & {
  readonly reason: ErrorCode;
  /** The setting that sets the bound; '' if there is none. */
  readonly bound: string;
};

const budgetBound = 'MEMORY_BUDGET_MIB';
const requestBound = 'GRPC_CONNECTION_REQUEST_MIB';
const answerBound = 'GRPC_CONNECTION_ANSWER_MIB';

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
