import { fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { serializedDescriptorFiles } from '../../endpoints/descriptor-image.ts';
import { Reflection } from '../../endpoints/reflection.ts';

/** The bytes of the answer to the bytes of a request. null: they are no request. */
export type ReflectionAnswers = (request: Uint8Array) => Uint8Array | null;

export function reflectionAnswers(services: readonly string[]): ReflectionAnswers {
  const reflection = new Reflection(services, serializedDescriptorFiles());
  return (bytes) => {
    const request = readRequest(bytes);
    return request === null ? null : toBinary(ServerReflectionResponseSchema, reflection.answer(request));
  };
}

function readRequest(bytes: Uint8Array): ServerReflectionRequest | null {
  try {
    return fromBinary(ServerReflectionRequestSchema, bytes);
  } catch {
    return null;
  }
}
