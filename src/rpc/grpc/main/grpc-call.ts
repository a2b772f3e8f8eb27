import type { Message } from '@bufbuild/protobuf';
import { LedgerError } from '../../../domain/errors.ts';
import { sha256Hex } from '../../../domain/keys/hash.ts';
import { limits } from '../../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../../runtime/limits/memory-budget.ts';
import type { EntityRequest } from '../../../service/calls/call.ts';
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
import { encodeAnswer } from './encode.ts';
import type { ReportedCall } from './reported-call.ts';
import { RequestQueue } from './request-queue.ts';

interface GrpcCallParts {
  readonly clientAddress: ClientAddress;
  readonly memory: MemoryBudget;
  now(): number;
}

/** Requests are bytes until the pipeline decodes them. */
abstract class GrpcCall implements IncomingCall {
  readonly transport = 'grpc';
  readonly query = '';
  call: RunningCall | null = null;
  protected readonly endpoint: Endpoint;
  protected readonly grpc: ReportedCall;
  protected readonly parts: GrpcCallParts;
  #heldBytes = 0;
  #isReleased = false;
  /** Settles when the rest of the request has arrived or will not; null if the pipeline does not wait for it. */
  #arrival: PromiseWithResolvers<void> | null = null;
  #cut: LedgerError | null = null;
  #cutStatus: number | null = null;

  constructor(grpc: ReportedCall, endpoint: Endpoint, parts: GrpcCallParts) {
    this.grpc = grpc;
    this.endpoint = endpoint;
    this.parts = parts;
  }

  /** Called when the caller has gone. */
  abstract gone(): void;

  header(name: string): string | undefined {
    return this.grpc.header(name);
  }

  /** HTTP/2 joins two headers of one name, so a key that was sent twice cannot be detected here. */
  idempotencyKey(): string | undefined {
    return this.header('idempotency-key');
  }

  address(): string {
    const { peer } = this.grpc;
    const remote = peer.slice(0, peer.lastIndexOf(':'));
    return this.parts.clientAddress(remote === '' ? undefined : remote, this.header('x-forwarded-for'));
  }

  get timeoutMs(): number {
    const { deadline } = this.grpc;
    return deadline === Number.POSITIVE_INFINITY ? deadline : deadline - this.parts.now();
  }

  receive(): Promise<void> | undefined {
    if (this.#cut !== null) throw this.#cut;
    if (this.grpc.isArriving) return this.#arrive();
    this.#hold();
    return undefined;
  }

  async #arrive(): Promise<void> {
    if (this.call?.aborted) throw notInTime();
    this.grpc.admit();
    this.#arrival = Promise.withResolvers();
    if (this.call !== null) this.call.onAbort = () => this.cut(notInTime());
    await this.#arrival.promise;
    if (this.call !== null) this.call.onAbort = null;
    this.#hold();
  }

  arrived(request: Buffer): void {
    this.grpc.arrived(request);
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
    const { length } = this.grpc.request;
    if (length > limits.requestBodyMaxBytes) throw tooLarge();
    // The register may have answered for the call while its caller was still being looked up.
    if (this.#isReleased) return;
    if (!this.parts.memory.hold('request', length)) throw outOfMemoryBudget();
    this.#heldBytes = length;
  }

  /** The call was answered. */
  release(): void {
    this.parts.memory.release('request', this.#heldBytes);
    this.#heldBytes = 0;
    this.#isReleased = true;
  }

  /** The caller sent no REST request: the signature covers POST, the method's path and the message as received. */
  signedRequest(): Omit<EntityRequest, 'timestamp'> {
    return { method: 'POST', path: this.endpoint.rpcPath, bodyHash: sha256Hex(this.grpc.request) };
  }

  decode(): Decoded {
    return readJsonFields(this.endpoint, readMessage(this.endpoint, this.grpc.request));
  }

  readable(): Message {
    return binaryTexts(this.endpoint.method.input, this.grpc.request);
  }

  equivalent(message: Message | null): RestEquivalent {
    return equivalentOf(this.endpoint, message);
  }

  fail(call: RunningCall, error: LedgerError): void {
    const status = (error === this.#cut ? this.#cutStatus : null) ?? statusOf(error.code).grpc;
    const { message, bytes } = statusDetails(error, call.requestId, status);
    this.grpc.fail(status, this.#head(call), message, bytes);
  }

  protected answerHead(call: RunningCall): string[] {
    const head = this.#head(call);
    for (const [name, value] of call.answerHeaders) head.push(name, value);
    if (call.replayed) head.push('idempotent-replayed', 'true');
    return head;
  }

  #head(call: RunningCall): string[] {
    const head = ['x-request-id', call.requestId];
    for (const [name, value] of call.headers) head.push(name, value);
    return head;
  }

  protected serialize(answer: object): Buffer {
    return encodeAnswer(this.endpoint.method.output, answer);
  }
}

export class GrpcUnaryCall extends GrpcCall implements UnaryCall {
  succeed(call: RunningCall, answer: object): void {
    const bytes = this.serialize(answer);
    this.grpc.answer(this.answerHead(call), bytes);
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
    this.grpc.send(bytes);
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
    this.grpc.end();
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
    this.grpc.start(this.answerHead(call));
  }
}

export class GrpcBidiCall extends GrpcStreamCall implements BidiCall {
  readonly requests: RequestQueue;

  constructor(grpc: ReportedCall, endpoint: Endpoint, parts: GrpcCallParts) {
    super(grpc, endpoint, parts);
    this.requests = new RequestQueue(grpc, parts.memory, (bytes) => {
      if (bytes.length > limits.requestBodyMaxBytes) throw tooLarge();
      return readMessage(endpoint, bytes);
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
