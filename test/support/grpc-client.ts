import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { Client, type ClientDuplexStream, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { type ErrorInfo, ErrorInfoSchema } from '../../src/gen/google/rpc/error_details_pb.ts';
import { type Status, StatusSchema } from '../../src/gen/google/rpc/status_pb.ts';
import { rpcPathOf } from '../../src/rpc/endpoints/endpoint.ts';

/** What a gRPC call came to. */
export interface GrpcAnswer {
  readonly message: Message | null;
  readonly error: ServiceError | null;
  /** ErrorInfo of grpc-status-details-bin. */
  readonly info: ErrorInfo | null;
  readonly metadata: Metadata;
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** `cert`: the port speaks TLS with this certificate for localhost. */
export function grpcClient(address: string, cert: Buffer | string | null = null): Client {
  return cert === null
    ? new Client(address, credentials.createInsecure())
    : new Client(address, credentials.createSsl(Buffer.from(cert)), { 'grpc.ssl_target_name_override': 'localhost' });
}

/** Calls a unary method with a message in plain form, or with raw bytes. */
export function callGrpc(
  client: Client,
  method: DescMethod,
  request: object | Buffer,
  headers: Readonly<Record<string, string>> = {},
  deadlineMs = 30_000,
): Promise<GrpcAnswer> {
  return new Promise((resolve) => {
    let initial = new Metadata();
    const call = client.makeUnaryRequest(
      rpcPathOf(method),
      (bytes: Buffer) => bytes,
      (bytes: Buffer) => bytes,
      Buffer.isBuffer(request) ? request : serialize(method.input, request),
      metadataOf(headers),
      { deadline: Date.now() + deadlineMs },
      (error, bytes) => {
        const message = bytes === undefined ? null : fromBinary(method.output, bytes);
        resolve({ message, error, info: error === null ? null : infoOf(error), metadata: error?.metadata ?? initial });
      },
    );
    call.on('metadata', (metadata) => {
      initial = metadata;
    });
  });
}

/** Calls a method that answers with a stream, and leaves it behind the first message. */
export function beginGrpc(
  client: Client,
  method: DescMethod,
  request: object | Buffer,
  headers: Readonly<Record<string, string>> = {},
): Promise<GrpcAnswer> {
  const call = client.makeServerStreamRequest(
    rpcPathOf(method),
    (bytes: Buffer) => bytes,
    (bytes: Buffer) => fromBinary(method.output, bytes),
    Buffer.isBuffer(request) ? request : serialize(method.input, request),
    metadataOf(headers),
  );
  let initial = new Metadata();
  call.on('metadata', (metadata) => {
    initial = metadata;
  });
  return new Promise((resolve) => {
    call.on('data', (message: Message) => {
      resolve({ message, error: null, info: null, metadata: initial });
      call.cancel();
    });
    call.on('end', () => resolve({ message: null, error: null, info: null, metadata: initial }));
    call.on('error', (error: ServiceError) =>
      resolve({ message: null, error, info: infoOf(error), metadata: error.metadata }),
    );
  });
}

export function openGrpcStream(
  client: Client,
  method: DescMethod,
  headers: Readonly<Record<string, string>> = {},
): ClientDuplexStream<object, Message> {
  return client.makeBidiStreamRequest(
    rpcPathOf(method),
    (request: object) => serialize(method.input, request),
    (bytes: Buffer) => fromBinary(method.output, bytes),
    metadataOf(headers),
  );
}

export function infoOf(error: ServiceError): ErrorInfo | null {
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  return Buffer.isBuffer(bytes) ? infoIn(fromBinary(StatusSchema, bytes)) : null;
}

export function infoIn({ details: [any] }: Status): ErrorInfo | null {
  return any === undefined ? null : (anyUnpack(any, ErrorInfoSchema) ?? null);
}

export function metadataOf(headers: Readonly<Record<string, string>>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

function serialize(desc: DescMessage, plain: object): Buffer {
  return asBuffer(toBinary(desc, create(desc, plain as MessageInitShape<DescMessage>)));
}
