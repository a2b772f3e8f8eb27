import type { Message } from '@bufbuild/protobuf';
import {
  Metadata,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
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
import { RequestQueue } from './request-queue.ts';

type AnyCall =
  | ServerUnaryCall<Buffer, Buffer>
  | ServerWritableStream<Buffer, Buffer>
  | ServerDuplexStream<Buffer, Buffer>;

/** What gRPC calls of all kinds have in common. Messages are bytes here: they are read when the pipeline asks for them. */
abstract class GrpcExchange implements Exchange {
  readonly door = 'grpc';
  call: RunningCall | null = null;
  protected readonly endpoint: Endpoint;
  readonly #call: AnyCall;
  readonly #clientAddress: ClientAddress;
  readonly #now: () => number;

  constructor(call: AnyCall, endpoint: Endpoint, clientAddress: ClientAddress, now: () => number) {
    this.#call = call;
    this.endpoint = endpoint;
    this.#clientAddress = clientAddress;
    this.#now = now;
  }

  /** The one request message. */
  protected abstract readonly bytes: Buffer;

  header(name: string): string | undefined {
    const values = this.#call.metadata.get(name);
    if (values.length === 0) return undefined;
    return values.length === 1 ? String(values[0]) : values.join(', ');
  }

  address(): string {
    const peer = this.#call.getPeer();
    const remote = peer.slice(0, peer.lastIndexOf(':'));
    return this.#clientAddress(remote === '' ? undefined : remote, this.header('x-forwarded-for'));
  }

  get timeoutMs(): number {
    const deadline = this.#call.getDeadline();
    if (deadline === Number.POSITIVE_INFINITY) return deadline;
    return Number(deadline) - this.#now();
  }

  receive(): Promise<void> | undefined {
    if (this.bytes.length > limits.requestBodyMaxBytes) throw tooLarge();
    return undefined;
  }

  /** The REST request was never sent, so what is signed is what was: POST, the method's path, the message as received. */
  signedRequest(): Omit<EntityRequest, 'timestamp'> {
    return { method: 'POST', path: this.endpoint.rpcPath, bodyHash: sha256Hex(this.bytes) };
  }

  decode(): Decoded {
    return readJsonFields(this.endpoint, readMessage(this.endpoint, this.bytes));
  }

  readable(): Message {
    return binaryTexts(this.endpoint.method.input, this.bytes);
  }

  equivalent(message: Message | null): RestEquivalent {
    return equivalentOf(this.endpoint, message);
  }

  abstract fail(call: RunningCall, error: LedgerError): void;

  protected answerMetadata(call: RunningCall): Metadata {
    const metadata = new Metadata();
    metadata.set('x-request-id', call.requestId);
    for (const [name, value] of call.headers) metadata.set(name, value);
    for (const [name, value] of call.answerHeaders) metadata.set(name, value);
    if (call.replayed) metadata.set('idempotent-replayed', 'true');
    return metadata;
  }

  protected serialize(answer: object): Buffer {
    return encodeAnswer(this.endpoint.method.output, answer);
  }
}

/** The error as grpc-js sends it: status, message, and ErrorInfo in the trailers. */
export function grpcError(call: RunningCall, error: LedgerError) {
  const metadata = new Metadata();
  metadata.set('x-request-id', call.requestId);
  for (const [name, value] of call.headers) metadata.set(name, value);
  metadata.set('grpc-status-details-bin', statusDetails(error, call.requestId));
  // grpc-js percent-encodes the message, which throws on lone surrogates.
  const details = error.message.toWellFormed();
  return { name: 'ServiceError', message: details, code: statusOf(error.code).grpc, details, metadata };
}

export class GrpcUnaryExchange extends GrpcExchange implements UnaryExchange {
  readonly #unary: ServerUnaryCall<Buffer, Buffer>;
  readonly #callback: sendUnaryData<Buffer>;

  constructor(
    call: ServerUnaryCall<Buffer, Buffer>,
    callback: sendUnaryData<Buffer>,
    endpoint: Endpoint,
    clientAddress: ClientAddress,
    now: () => number,
  ) {
    super(call, endpoint, clientAddress, now);
    this.#unary = call;
    this.#callback = callback;
  }

  protected get bytes(): Buffer {
    return this.#unary.request;
  }

  succeed(call: RunningCall, answer: object): void {
    const bytes = this.serialize(answer);
    this.#unary.sendMetadata(this.answerMetadata(call));
    this.#callback(null, bytes);
  }

  fail(call: RunningCall, error: LedgerError): void {
    this.#callback(grpcError(call, error));
  }
}

/** A stream of answers to one request. */
export class GrpcStreamExchange extends GrpcExchange implements StreamExchange {
  readonly #stream: ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;
  #started = false;

  constructor(
    stream: ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>,
    endpoint: Endpoint,
    clientAddress: ClientAddress,
    now: () => number,
  ) {
    super(stream, endpoint, clientAddress, now);
    this.#stream = stream;
  }

  protected get bytes(): Buffer {
    return 'request' in this.#stream ? this.#stream.request : Buffer.alloc(0);
  }

  send(call: RunningCall, answer: object): Promise<void> | undefined {
    const stream = this.#stream;
    if (!this.#started) this.#start(call);
    if (stream.destroyed || stream.write(this.serialize(answer))) return undefined;
    return new Promise((resolve) => {
      const done = (): void => {
        stream.off('drain', done).off('close', done).off('cancelled', done);
        resolve();
      };
      stream.on('drain', done).on('close', done).on('cancelled', done);
    });
  }

  end(call: RunningCall): void {
    if (!this.#started) this.#start(call);
    this.#stream.end();
  }

  fail(call: RunningCall, error: LedgerError): void {
    if (!this.#stream.destroyed) this.#stream.emit('error', grpcError(call, error));
  }

  #start(call: RunningCall): void {
    this.#started = true;
    this.#stream.sendMetadata(this.answerMetadata(call));
  }
}

/** A stream both ways. */
export class GrpcBidiExchange extends GrpcStreamExchange implements BidiExchange {
  readonly requests: RequestQueue;

  constructor(
    stream: ServerDuplexStream<Buffer, Buffer>,
    endpoint: Endpoint,
    clientAddress: ClientAddress,
    now: () => number,
  ) {
    super(stream, endpoint, clientAddress, now);
    this.requests = new RequestQueue(stream, (bytes) => {
      if (bytes.length > limits.requestBodyMaxBytes) throw tooLarge();
      return readMessage(endpoint, bytes);
    });
  }
}
