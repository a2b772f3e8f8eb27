import type { Message } from '@bufbuild/protobuf';
import { LedgerError } from '../../../domain/errors.ts';
import { sha256Hex } from '../../../domain/keys/hash.ts';
import { limits } from '../../../runtime/limits/limits.ts';
import { type MemoryBudget, type MemoryKind, smallRequestBytes } from '../../../runtime/limits/memory-budget.ts';
import type { EntityRequest } from '../../../service/calls/call.ts';
import { encodedOnce } from '../../../service/calls/shared-answer.ts';
import { outOfMemoryBudget } from '../../../service/limits/out-of-memory-budget.ts';
import type { ClientAddress } from '../../call/client-address.ts';
import { statusDetails } from '../../call/error-info.ts';
import type {
  BidiCall,
  Decoded,
  IncomingCall,
  RestEquivalent,
  StreamCall,
  UnaryCall,
} from '../../call/incoming-call.ts';
import { readJsonFields, readMessage } from '../../call/json-fields.ts';
import { binaryTexts } from '../../call/readable-request.ts';
import { equivalentOf } from '../../call/rest-equivalent.ts';
import type { RunningCall } from '../../call/running-call.ts';
import { statusOf } from '../../call/status.ts';
import type { Endpoint } from '../../endpoints/endpoint.ts';
import { tooLarge } from '../../http/body.ts';
import { type FrameReader, type FrameWriter, workerCommand } from '../frames.ts';
import { encodeAnswer } from './encode.ts';
import { RequestQueue } from './request-queue.ts';

export interface GrpcCallParts {
  readonly clientAddress: ClientAddress;
  readonly memory: MemoryBudget;
  readonly writer: FrameWriter;
  now(): number;
  /** Called with the call's last frame. */
  ended(number: number): void;
}

const nothing = Buffer.alloc(0);

/** A call that the worker has reported. Requests are bytes until the pipeline decodes them. */
abstract class GrpcCall implements IncomingCall {
  readonly transport = 'grpc';
  readonly query = '';
  call: RunningCall | null = null;
  protected readonly parts: GrpcCallParts;
  protected readonly endpoint: Endpoint;
  readonly #number: number;
  /** Whether the request has begun and not ended. */
  #isArriving: boolean;
  /** Unix time, ms; Infinity if the caller set no deadline. */
  readonly #deadline: number;
  /** The address of the caller's connection, as `address:port`; then names and values. */
  readonly #headers: readonly string[];
  /** Empty for a stream of requests, and until the request has arrived. */
  #request: Buffer = nothing;
  /** Whether the last frame was sent. The number may belong to another call then. */
  #isOver = false;
  #heldAs: MemoryKind = 'request';
  #heldBytes = 0;
  #isReleased = false;
  /** Settles when the rest of the request has arrived or will not; null if the pipeline does not wait for it. */
  #arrival: PromiseWithResolvers<void> | null = null;
  #cut: LedgerError | null = null;
  #cutStatus: number | null = null;

  /** `frame` is positioned after the method's number. */
  constructor(parts: GrpcCallParts, endpoint: Endpoint, number: number, isArriving: boolean, frame: FrameReader) {
    this.parts = parts;
    this.endpoint = endpoint;
    this.#number = number;
    this.#isArriving = isArriving;
    this.#deadline = frame.f64();
    this.#headers = frame.texts();
    if (!isArriving) this.#request = Buffer.from(frame.bytes());
  }

  abstract gone(): void;

  /** Returns null if the call is over. */
  protected frame(kind: number): FrameWriter | null {
    return this.#isOver ? null : this.parts.writer.frame(kind, this.#number);
  }

  protected lastFrame(kind: number): FrameWriter | null {
    const frame = this.frame(kind);
    if (frame !== null) this.parts.ended(this.#number);
    this.#isOver = true;
    return frame;
  }

  header(name: string): string | undefined {
    const headers = this.#headers;
    for (let at = 1; at < headers.length; at += 2) if (headers[at] === name) return headers[at + 1];
    return undefined;
  }

  /** HTTP/2 joins two headers of one name, so a key that was sent twice cannot be detected here. */
  idempotencyKey(): string | undefined {
    return this.header('idempotency-key');
  }

  address(): string {
    const [peer = ''] = this.#headers;
    const remote = peer.slice(0, peer.lastIndexOf(':'));
    return this.parts.clientAddress(remote === '' ? undefined : remote, this.header('x-forwarded-for'));
  }

  get timeoutMs(): number {
    return this.#deadline === Number.POSITIVE_INFINITY ? this.#deadline : this.#deadline - this.parts.now();
  }

  receive(): Promise<void> | undefined {
    if (this.#cut !== null) throw this.#cut;
    if (this.#isArriving) return this.#arrive();
    this.#hold();
    return undefined;
  }

  get received(): Uint8Array {
    return this.#request;
  }

  async #arrive(): Promise<void> {
    if (this.call?.aborted) throw notInTime();
    this.frame(workerCommand.admitted);
    this.#arrival = Promise.withResolvers();
    if (this.call !== null) this.call.onAbort = () => this.cut(notInTime());
    await this.#arrival.promise;
    if (this.call !== null) this.call.onAbort = null;
    this.#hold();
  }

  arrived(request: Buffer): void {
    this.#request = request;
    this.#isArriving = false;
    this.#arrival?.resolve();
  }

  /** The rest of the request will not arrive. `status` is the gRPC status if it differs from that of the code. */
  cut(error: LedgerError, status: number | null = null): void {
    this.#cut = error;
    this.#cutStatus = status;
    this.#arrival?.reject(error);
  }

  /** Counts the request. Throws `payload_too_large` or `overloaded`. */
  #hold(): void {
    const { length } = this.#request;
    if (length > limits.requestBodyMaxBytes) throw tooLarge();
    // The register may have answered for the call while its caller was still being looked up.
    if (this.#isReleased) return;
    if (this.endpoint.method.methodKind === 'unary' && length <= smallRequestBytes) this.#heldAs = 'small';
    if (!this.parts.memory.hold(this.#heldAs, length)) throw outOfMemoryBudget();
    this.#heldBytes = length;
  }

  /** The call was answered. */
  release(): void {
    this.parts.memory.release(this.#heldAs, this.#heldBytes);
    this.#heldBytes = 0;
    this.#isReleased = true;
  }

  /** The caller sent no REST request: the signature covers POST, the method's path and the message as received. */
  signedRequest(): Omit<EntityRequest, 'timestamp'> {
    return { method: 'POST', path: this.endpoint.rpcPath, bodyHash: sha256Hex(this.#request) };
  }

  decode(): Decoded {
    return readJsonFields(this.endpoint, readMessage(this.endpoint, this.#request));
  }

  readable(): Message {
    return binaryTexts(this.endpoint.method.input, this.#request);
  }

  equivalent(message: Message | null): RestEquivalent {
    return equivalentOf(this.endpoint, message);
  }

  fail(call: RunningCall, error: LedgerError): void {
    const status = (error === this.#cut ? this.#cutStatus : null) ?? statusOf(error.code).grpc;
    const { message, bytes } = statusDetails(error, call.requestId, status);
    this.lastFrame(workerCommand.fail)
      ?.u8(status)
      .texts(this.#headerList(call))
      .bytes(Buffer.from(message))
      .bytes(bytes);
  }

  protected answerHeaderList(call: RunningCall): string[] {
    const list = this.#headerList(call);
    for (const [name, value] of call.answerHeaders) list.push(name, value);
    if (call.replayed) list.push('idempotent-replayed', 'true');
    return list;
  }

  #headerList(call: RunningCall): string[] {
    const list = ['x-request-id', call.requestId];
    for (const [name, value] of call.headers) list.push(name, value);
    return list;
  }

  protected serialize(answer: object): Buffer {
    const { output } = this.endpoint.method;
    return encodedOnce(answer, 'protobuf', () => encodeAnswer(output, answer));
  }
}

export class GrpcUnaryCall extends GrpcCall implements UnaryCall {
  succeed(call: RunningCall, answer: object): void {
    const bytes = this.serialize(answer);
    this.lastFrame(workerCommand.answer)?.texts(this.answerHeaderList(call)).bytes(bytes);
  }

  gone(): void {}
}

export class GrpcStreamCall extends GrpcCall implements StreamCall {
  #started = false;
  #isGone = false;
  /** Bytes of answers that HTTP/2 has not taken yet. */
  #unsentBytes = 0;
  #wake: (() => void) | null = null;

  send(call: RunningCall, answer: object): Promise<void> | undefined {
    this.#start(call);
    if (this.#isGone) return undefined;
    const bytes = this.serialize(answer);
    this.frame(workerCommand.send)?.bytes(bytes);
    this.#unsentBytes += bytes.length;
    if (this.#unsentBytes < limits.streamSendAheadBytes) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  sent(bytes: number): void {
    this.#unsentBytes -= bytes;
    if (this.#unsentBytes < limits.streamSendAheadBytes) this.#goOn();
  }

  end(call: RunningCall): void {
    this.#start(call);
    this.lastFrame(workerCommand.end);
  }

  override fail(call: RunningCall, error: LedgerError): void {
    super.fail(call, error);
    this.gone();
  }

  gone(): void {
    this.#isGone = true;
    this.#goOn();
  }

  #goOn(): void {
    this.#wake?.();
    this.#wake = null;
  }

  #start(call: RunningCall): void {
    if (this.#started) return;
    this.#started = true;
    this.frame(workerCommand.headers)?.texts(this.answerHeaderList(call));
  }
}

export class GrpcBidiCall extends GrpcStreamCall implements BidiCall {
  readonly requests: RequestQueue;

  constructor(...given: ConstructorParameters<typeof GrpcStreamCall>) {
    super(...given);
    const source = {
      grant: (count: number, takenBytes: number) => this.frame(workerCommand.grant)?.u32(count).u32(takenBytes),
      drop: () => this.frame(workerCommand.drop),
    };
    this.requests = new RequestQueue(source, this.parts.memory, (bytes) => {
      if (bytes.length > limits.requestBodyMaxBytes) throw tooLarge();
      return readMessage(this.endpoint, bytes);
    });
  }

  override release(): void {
    super.release();
    this.requests.release();
  }

  override gone(): void {
    super.gone();
    this.requests.end();
  }
}

function notInTime(): LedgerError {
  return new LedgerError('unavailable', 'The request did not arrive in time: nothing was written.');
}
