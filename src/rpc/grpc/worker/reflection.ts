import { type Server, type ServerDuplexStream, status } from '@grpc/grpc-js';
import { reflectionServices } from '../../endpoints/reflection-services.ts';
import { asIs, callStreamOf, refuseUnloaded } from './call-streams.ts';
import type { ReflectionAnswers } from './reflection-answers.ts';

/**
 * Serves reflection of the services. What answers is loaded with the first call: it is a third of the modules of this
 * thread, and most nodes are never asked.
 */
export function addReflection(server: Server, services: readonly string[]): void {
  let loading: Promise<ReflectionAnswers> | null = null;
  const handler = async (call: BytesCall) => {
    loading ??= import('./reflection-answers.ts').then(({ reflectionAnswers }) => reflectionAnswers(services));
    try {
      answerOneByOne(call, await loading);
    } catch {
      refuseUnloaded(call);
    }
  };
  for (const name of reflectionServices)
    server.register(`/${name}/ServerReflectionInfo`, (call: BytesCall) => void handler(call), asIs, asIs, 'bidi');
}

type BytesCall = ServerDuplexStream<Buffer, Buffer>;

/** Reads the next request of a stream once the answer to the last one was taken. */
function answerOneByOne(call: BytesCall, answerTo: ReflectionAnswers): void {
  const stream = callStreamOf(call);
  call.on('data', (bytes: Buffer) => {
    stream.handedOn(bytes.length);
    const answer = answerTo(bytes);
    if (answer === null) stream.refuse(status.INVALID_ARGUMENT, 'invalid_argument', noRequest);
    else call.write(Buffer.from(answer), () => stream.gate.allow(1));
  });
  call.on('end', () => call.end());
  stream.gate.allow(1);
}

const noRequest = 'The request is no serialized grpc.reflection.v1.ServerReflectionRequest.';
