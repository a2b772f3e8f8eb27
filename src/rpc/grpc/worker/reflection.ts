import {
  create,
  createFileRegistry,
  type DescExtension,
  type DescFile,
  fromBinary,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { type Server, type ServerDuplexStream, status } from '@grpc/grpc-js';
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { callStreamOf } from './call-streams.ts';

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>;

/**
 * gRPC server reflection (https://github.com/grpc/grpc/blob/master/doc/server-reflection.md). `files` are serialized
 * FileDescriptorProto messages, each after the files that it imports. An answer has a file and all that it imports.
 */
class Reflection {
  readonly #services: readonly string[];
  readonly #filesByName = new Map<string, DescFile>();
  readonly #filesBySymbol = new Map<string, DescFile>();
  readonly #extensions: readonly DescExtension[];
  readonly #bytes = new Map<string, Uint8Array>();

  constructor(services: readonly string[], files: readonly Uint8Array[]) {
    this.#services = services;
    const file = files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    for (const [at, { name }] of file.entries()) this.#bytes.set(name, files[at] ?? new Uint8Array());
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
    for (const desc of registry.files) {
      this.#filesByName.set(desc.proto.name, desc);
      for (const symbol of symbolsOf(desc)) this.#filesBySymbol.set(symbol, desc);
    }
    this.#extensions = [...registry].filter((type) => type.kind === 'extension');
  }

  answer(request: ServerReflectionRequest): Uint8Array {
    const response = create(ServerReflectionResponseSchema, {
      validHost: request.host,
      originalRequest: request,
      messageResponse: this.#answer(request.messageRequest),
    });
    return toBinary(ServerReflectionResponseSchema, response);
  }

  #answer(asked: ServerReflectionRequest['messageRequest']): Answer {
    switch (asked.case) {
      case 'listServices':
        return { case: 'listServicesResponse', value: { service: this.#services.map((name) => ({ name })) } };
      case 'fileByFilename':
        return this.#file(this.#filesByName.get(asked.value));
      case 'fileContainingSymbol':
        return this.#file(this.#filesBySymbol.get(asked.value));
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = asked.value;
        return this.#file(this.#extensionsOf(containingType).find(({ number }) => number === extensionNumber)?.file);
      }
      case 'allExtensionNumbersOfType': {
        const extensionNumber = this.#extensionsOf(asked.value).map(({ number }) => number);
        if (extensionNumber.length === 0) return notFound;
        return { case: 'allExtensionNumbersResponse', value: { baseTypeName: asked.value, extensionNumber } };
      }
      default:
        return errorOf(status.UNIMPLEMENTED, 'This kind of reflection request is not served.');
    }
  }

  #extensionsOf(typeName: string): readonly DescExtension[] {
    return this.#extensions.filter(({ extendee }) => extendee.typeName === typeName);
  }

  #file(file: DescFile | undefined): Answer {
    if (file === undefined) return notFound;
    const found = new Set<DescFile>();
    const collect = (one: DescFile): void => {
      if (found.has(one)) return;
      found.add(one);
      one.dependencies.forEach(collect);
    };
    collect(file);
    const fileDescriptorProto = [...found].map(({ proto }) => this.#bytes.get(proto.name) ?? new Uint8Array());
    return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } };
  }
}

const notFound = errorOf(status.NOT_FOUND, 'There is no such file, symbol or extension here.');

function errorOf(errorCode: number, errorMessage: string): Answer {
  return { case: 'errorResponse', value: { errorCode, errorMessage } };
}

/** Full names of types, services and their members. */
function* symbolsOf(file: DescFile): Iterable<string> {
  for (const service of file.services) {
    yield service.typeName;
    for (const { name } of service.methods) yield `${service.typeName}.${name}`;
  }
  for (const type of nestedTypes(file)) {
    if (type.kind === 'service') continue;
    yield type.typeName;
    if (type.kind === 'message')
      for (const { name } of [...type.fields, ...type.oneofs]) yield `${type.typeName}.${name}`;
    if (type.kind === 'enum') for (const { name } of type.values) yield `${type.typeName}.${name}`;
  }
}

/** Both versions have the same messages. */
const serviceNames = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

export function addReflection(server: Server, services: readonly string[], files: readonly Uint8Array[]): void {
  const reflection = new Reflection([...services, ...serviceNames], files);
  for (const name of serviceNames) {
    const handler = (call: BytesCall) => answerOneByOne(call, (request) => reflection.answer(request));
    server.register(`/${name}/ServerReflectionInfo`, handler, asIs, asIs, 'bidi');
  }
}

type BytesCall = ServerDuplexStream<Buffer, Buffer>;

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

/** Reads the next request of a stream once the answer to the last one was taken. */
function answerOneByOne(call: BytesCall, answer: (request: ServerReflectionRequest) => Uint8Array): void {
  const stream = callStreamOf(call);
  call.on('data', (bytes: Buffer) => {
    stream.handedOn(bytes.length);
    const request = readRequest(bytes);
    if (request === null) stream.refuse(status.INVALID_ARGUMENT, 'invalid_argument', noRequest);
    else call.write(Buffer.from(answer(request)), () => stream.gate.allow(1));
  });
  call.on('end', () => call.end());
  stream.gate.allow(1);
}

const noRequest = `The request is no serialized ${ServerReflectionRequestSchema.typeName}.`;

function readRequest(bytes: Buffer): ServerReflectionRequest | null {
  try {
    return fromBinary(ServerReflectionRequestSchema, bytes);
  } catch {
    return null;
  }
}
