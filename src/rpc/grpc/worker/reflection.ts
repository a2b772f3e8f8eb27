import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Server, type ServerDuplexStream, status } from '@grpc/grpc-js';
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { Reflection, reflectionServices } from '../../endpoints/reflection.ts';
import { callStreamOf } from './call-streams.ts';

export function addReflection(server: Server, services: readonly string[], files: readonly Uint8Array[]): void {
  const reflection = new Reflection(services, files);
  const answer = (request: ServerReflectionRequest) =>
    toBinary(ServerReflectionResponseSchema, reflection.answer(request));
  for (const name of reflectionServices) {
    const handler = (call: BytesCall) => answerOneByOne(call, answer);
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
