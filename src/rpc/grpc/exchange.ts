import type { Message } from '@bufbuild/protobuf';
import type { LedgerError } from '../../domain/errors.ts';
import { sha256Hex } from '../../domain/hash.ts';
import { limits } from '../../limits.ts';
import type { EntityRequest } from '../../service/credentials/credentials.ts';
import type { ClientAddress } from '../call/client-address.ts';
import { statusDetails } from '../call/error-info.ts';
import type {
  BidiExchange,
  Decoded,
  Exchange,
  RestEquivalent,
  StreamExchange,
  UnaryExchange,
} from '../call/exchange.ts';
import { readJsonFields, readMessage } from '../call/json-fields.ts';
import { binaryTexts } from '../call/readable-request.ts';
import { equivalentOf } from '../call/rest-equivalent.ts';
import type { RunningCall } from '../call/running-call.ts';
import { statusOf } from '../call/status.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import { tooLarge } from '../http/body.ts';
import { encodeAnswer } from './binary-encode.ts';
import type { GrpcCall } from './call.ts';
import { RequestQueue } from './request-queue.ts';

/** What gRPC calls of all kinds have in common. Messages are bytes here: they are read when the pipeline asks for them. */
abstract class GrpcExchange implements Exchange {
  readonly door = 'grpc';
  readonly query = '';
  call: RunningCall | null = null;
  protected readonly endpoint: Endpoint;
  protected readonly grpc: GrpcCall;
  readonly #clientAddress: ClientAddress;
  readonly #now: () => number;

  constructor(grpc: GrpcCall, endpoint: Endpoint, clientAddress: ClientAddress, now: () => number) {
    this.grpc = grpc;
    this.endpoint = endpoint;
    this.#clientAddress = clientAddress;
    this.#now = now;
  }

  /** The caller has gone. */
  abstract gone(): void;

  header(name: string): string | undefined {
    return this.grpc.header(name);
  }

  /** Two come as one from HTTP/2 already, joined. */
  idempotencyKey(): string | undefined {
    return this.header('idempotency-key');
  }

  address(): string {
    const { peer } = this.grpc;
    const remote = peer.slice(0, peer.lastIndexOf(':'));
    return this.#clientAddress(remote === '' ? undefined : remote, this.header('x-forwarded-for'));
  }

  get timeoutMs(): number {
    const { deadline } = this.grpc;
    return deadline === Number.POSITIVE_INFINITY ? deadline : deadline - this.#now();
  }

  receive(): Promise<void> | undefined {
    if (this.grpc.request.length > limits.requestBodyMaxBytes) throw tooLarge();
    return undefined;
  }

  /** The REST request was never sent, so what is signed is what was: POST, the method's path, the message as received. */
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

  /** With ErrorInfo in the trailers. */
  fail(call: RunningCall, error: LedgerError): void {
    // grpc-js percent-encodes the message, which throws on lone surrogates.
    const message = error.message.toWellFormed();
    this.grpc.fail(statusOf(error.code).grpc, this.#head(call), message, statusDetails(error, call.requestId));
  }

  protected answerHead(call: RunningCall): string[] {
    const head = this.#head(call);
    for (const [name, value] of call.answerHeaders) head.push(name, value);
    if (call.replayed) head.push('idempotent-replayed', 'true');
    return head;
  }

  /** Of every answer, errors too. */
  #head(call: RunningCall): string[] {
    const head = ['x-request-id', call.requestId];
    for (const [name, value] of call.headers) head.push(name, value);
    return head;
  }

  protected serialize(answer: object): Buffer {
    return encodeAnswer(this.endpoint.method.output, answer);
  }
}

export class GrpcUnaryExchange extends GrpcExchange implements UnaryExchange {
  succeed(call: RunningCall, answer: object): void {
    const bytes = this.serialize(answer);
    this.grpc.answer(this.answerHead(call), bytes);
  }

  gone(): void {}
}

/** A stream of answers to one request. */
export class GrpcStreamExchange extends GrpcExchange implements StreamExchange {
  #started = false;
  #isGone = false;
  /** Of answers that HTTP/2 has not taken yet. */
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

  /** So much was taken. */
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

/** A stream both ways. */
export class GrpcBidiExchange extends GrpcStreamExchange implements BidiExchange {
  readonly requests: RequestQueue;

  constructor(grpc: GrpcCall, endpoint: Endpoint, clientAddress: ClientAddress, now: () => number) {
    super(grpc, endpoint, clientAddress, now);
    this.requests = new RequestQueue(grpc, (bytes) => {
      if (bytes.length > limits.requestBodyMaxBytes) throw tooLarge();
      return readMessage(endpoint, bytes);
    });
  }

  override gone(): void {
    super.gone();
    this.requests.end();
  }
}
