import {
  create,
  createFileRegistry,
  type DescExtension,
  type DescFile,
  fromBinary,
  type MessageInitShape,
} from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import {
  type ServerReflectionRequest,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from '../../gen/grpc/reflection/v1/reflection_pb.ts';
import { reflectionServices } from './reflection-services.ts';

const standardServices = ['grpc.health.v1.Health', ...reflectionServices];

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>;

/**
 * gRPC server reflection (https://github.com/grpc/grpc/blob/master/doc/server-reflection.md). `files` are serialized
 * FileDescriptorProto messages, each after the files that it imports. An answer has a file and all that it imports.
 */
export class Reflection {
  readonly #services: readonly string[];
  readonly #filesByName = new Map<string, DescFile>();
  readonly #filesBySymbol = new Map<string, DescFile>();
  readonly #extensions: readonly DescExtension[];
  readonly #bytes = new Map<string, Uint8Array>();

  constructor(services: readonly string[], files: readonly Uint8Array[]) {
    this.#services = [...services, ...standardServices];
    const file = files.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    for (const [at, { name }] of file.entries()) this.#bytes.set(name, files[at] ?? new Uint8Array());
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
    for (const desc of registry.files) {
      this.#filesByName.set(desc.proto.name, desc);
      for (const symbol of symbolsOf(desc)) this.#filesBySymbol.set(symbol, desc);
    }
    this.#extensions = [...registry].filter((type) => type.kind === 'extension');
  }

  answer(request: ServerReflectionRequest): ServerReflectionResponse {
    return create(ServerReflectionResponseSchema, {
      validHost: request.host,
      originalRequest: request,
      messageResponse: this.#answer(request.messageRequest),
    });
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
        return errorOf(UNIMPLEMENTED, 'This kind of reflection request is not served.');
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

/** Of `google.rpc.Code`. */
const NOT_FOUND = 5;
const UNIMPLEMENTED = 12;

const notFound = errorOf(NOT_FOUND, 'There is no such file, symbol or extension here.');

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
