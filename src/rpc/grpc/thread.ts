import type { EventEmitter } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import {
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type MethodDefinition,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { Slots } from '../../domain/slots.ts';
import { limits } from '../../limits.ts';
import type { TlsKeys } from '../http/server.ts';
import { addressOf, listenOn } from '../listening.ts';
import { releaseClosedStreams } from './closed-streams.ts';
import { Inbox, Outbox, told } from './frames.ts';
import { Health } from './health.ts';
import {
  headOf,
  linkCall,
  type StreamCall,
  type ThreadCall,
  ThreadStreamCall,
  ThreadUnaryCall,
  type UnaryCall,
} from './thread-calls.ts';
import type { GrpcMethod, GrpcService, GrpcThreadData, ThreadNews, ThreadOrder } from './thread-messages.ts';
import { AnsweringServer } from './thread-refusals.ts';

/** What the thread of a gRPC door runs: HTTP/2, TLS and gRPC. What calls ask for is done by the main thread (door.ts). */
const main = parentPort;
if (main === null) throw new Error('this runs as a thread of a gRPC door');
const { host, port, tls, services, files } = workerData as GrpcThreadData;

const outbox = new Outbox((frames) => main.postMessage(frames, [frames.buffer]));
const calls = new Slots<ThreadCall>();
const nothing = new Uint8Array(0);

const server = new AnsweringServer(calls, outbox, {
  'grpc.max_receive_message_length': limits.grpcReceiveMaxBytes,
  'grpc.max_send_message_length': limits.grpcSendMaxBytes,
  'grpc.max_concurrent_streams': limits.grpcStreamsMax,
  'grpc-node.max_session_memory': limits.grpcSessionMemoryMb,
  'grpc.keepalive_time_ms': limits.grpcKeepaliveMs,
  'grpc.keepalive_timeout_ms': limits.grpcKeepaliveTimeoutMs,
  'grpc.max_connection_idle_ms': limits.grpcIdleMs,
  'grpc.enable_channelz': 0,
});
for (const service of services) server.addService(definitionOf(service), implementationOf(service));
const health = new Health(services.map(({ name }) => name));
health.addTo(server);
reflection().addToServer(server);
releaseClosedStreams();

// The sockets are ours, so that their number is bounded and stopping is too.
const injector = server.createConnectionInjector(credentialsOf(tls));
const sockets = new Set<Socket>();
const net = createServer({ noDelay: true, pauseOnConnect: false }, (socket) => {
  sockets.add(socket);
  socket.on('close', () => sockets.delete(socket));
  socket.on('error', () => socket.destroy());
  injector.injectConnection(socket);
});
net.maxConnections = limits.connectionsMax;

main.on('message', (message: Uint8Array<ArrayBuffer> | ThreadOrder) => {
  if (message instanceof Uint8Array) obey(new Inbox(message));
  else if (message.order === 'say serving') health.setServing(message.serving);
  else void close(message.graceMs);
});

try {
  await listenOn(net, host, port);
  tell({ news: 'listening', ...addressOf(net) });
} catch (error) {
  const { message, cause } = error as Error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : null;
  tell({ news: 'not listening', message, code });
}

function tell(news: ThreadNews): void {
  main?.postMessage(news);
}

function obey(frames: Inbox): void {
  while (!frames.isEmpty) {
    const kind = frames.u8();
    const number = frames.u32();
    const call = calls.get(number);
    if (call === undefined) throw new Error(`a frame of kind ${kind} for call ${number}, which is over`);
    if (call.obey(kind, frames)) calls.remove(number);
  }
}

/** Tells the main thread when the caller of a call has gone. */
function watch(call: EventEmitter, number: number, own: ThreadCall): void {
  call.on('cancelled', () => {
    if (calls.get(number) === own) outbox.frame(told.gone, number);
  });
}

async function close(graceMs: number): Promise<void> {
  health.setServing(false);
  const closed = new Promise<void>((resolve) => net.close(() => resolve()));
  // Each connection is told to go away and ends by itself after its last call. grpc-js says too early that all have.
  server.tryShutdown(() => {});
  const late = setTimeout(() => {
    for (const socket of sockets) socket.destroy();
  }, graceMs);
  await closed;
  clearTimeout(late);
  server.forceShutdown();
  outbox.flush();
  tell({ news: 'closed' });
}

function credentialsOf(keys: TlsKeys | null): ServerCredentials {
  if (keys === null) return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(null, [
    { cert_chain: Buffer.from(keys.cert), private_key: Buffer.from(keys.key) },
  ]);
}

/** Messages stay bytes here: they are read by the main thread, after it knows the caller. */
function definitionOf({ methods }: GrpcService): ServiceDefinition {
  const asIs = (bytes: Buffer): Buffer => bytes;
  const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
  for (const { name, path, kind } of methods) {
    definition[name] = {
      path,
      requestStream: kind === 'bidi_streaming',
      responseStream: kind !== 'unary',
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
  }
  return definition;
}

function implementationOf({ methods }: GrpcService): UntypedServiceImplementation {
  return Object.fromEntries(methods.map((method) => [method.name, handlerOf(method)]));
}

function handlerOf(
  method: GrpcMethod,
):
  | handleUnaryCall<Buffer, Buffer>
  | handleServerStreamingCall<Buffer, Buffer>
  | handleBidiStreamingCall<Buffer, Buffer> {
  if (method.kind === 'unary')
    return (call, callback) => {
      const head = headOf(call);
      const own = new ThreadUnaryCall(call, callback);
      const number = calls.add(own);
      linkCall(call, own);
      watch(call, number, own);
      outbox.frame(told.begun, number).u32(method.number).f64(deadlineOf(call)).head(head).bytes(call.request);
    };
  return (call: StreamCall) => {
    const head = headOf(call);
    const own = new ThreadStreamCall(call, outbox);
    own.number = calls.add(own);
    linkCall(call, own);
    watch(call, own.number, own);
    const request = 'request' in call ? call.request : nothing;
    outbox.frame(told.begun, own.number).u32(method.number).f64(deadlineOf(call)).head(head).bytes(request);
  };
}

function deadlineOf(call: UnaryCall | StreamCall): number {
  return Number(call.getDeadline());
}

function reflection(): ReflectionService {
  type PackageDefinition = ConstructorParameters<typeof ReflectionService>[0];
  const fileDescriptorProtos = files.map((file) => Buffer.from(file));
  // Of a package that proto-loader would have made, the service looks at these bytes alone.
  const loaded = { api: { fileDescriptorProtos } } as unknown as PackageDefinition;
  return new ReflectionService(loaded, { services: services.map((service) => service.name) });
}
