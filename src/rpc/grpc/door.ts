import { createServer, type Server as NetServer, type Socket } from 'node:net';
import {
  type handleBidiStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { limits } from '../../limits.ts';
import type { ClientAddress } from '../call/client-address.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { TlsKeys } from '../http/server.ts';
import { addressOf, type ListeningDoor, listenOn } from '../listening.ts';
import type { Pipeline } from '../pipeline/pipeline.ts';
import { releaseClosedStreams } from './closed-streams.ts';
import { GrpcBidiExchange, GrpcStreamExchange, GrpcUnaryExchange } from './exchange.ts';
import { addReflection } from './reflection.ts';

export interface GrpcDoorParts {
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly pipeline: Pipeline;
  readonly clientAddress: ClientAddress;
  readonly tls: TlsKeys | null;
  now(): number;
}

/** The gRPC port: every method of the API, reflection, and grpc.health.v1. */
export interface GrpcDoor extends ListeningDoor {
  /** What grpc.health.v1 says, for the whole server and each service. */
  setServing(serving: boolean): void;
}

/** Opens it; port 0 takes any free one. The sockets are ours, so that their number is bounded and stopping is too. */
export async function openGrpcDoor(parts: GrpcDoorParts, host: string, port: number): Promise<GrpcDoor> {
  const server = new Server({
    'grpc.max_receive_message_length': limits.grpcReceiveMaxBytes,
    'grpc.max_send_message_length': limits.grpcSendMaxBytes,
    'grpc.max_concurrent_streams': limits.grpcStreamsMax,
    'grpc-node.max_session_memory': limits.grpcSessionMemoryMb,
    'grpc.keepalive_time_ms': limits.grpcKeepaliveMs,
    'grpc.keepalive_timeout_ms': limits.grpcKeepaliveTimeoutMs,
    'grpc.max_connection_idle_ms': limits.grpcIdleMs,
    'grpc.enable_channelz': 0,
  });
  for (const [definition, implementation] of servicesOf(parts)) server.addService(definition, implementation);
  const services = new Set([...parts.endpoints.values()].map(({ method }) => method.parent.typeName));
  const health = new HealthImplementation();
  const setServing = (serving: boolean): void => {
    for (const name of ['', ...services]) health.setStatus(name, serving ? 'SERVING' : 'NOT_SERVING');
  };
  setServing(true);
  health.addToServer(server);
  addReflection(server, parts.endpoints.values());

  releaseClosedStreams();
  const injector = server.createConnectionInjector(credentialsOf(parts.tls));
  const sockets = new Set<Socket>();
  const net: NetServer = createServer({ noDelay: true, pauseOnConnect: false }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    injector.injectConnection(socket);
  });
  net.maxConnections = limits.connectionsMax;
  await listenOn(net, host, port);

  const close = async (graceMs: number): Promise<void> => {
    setServing(false);
    const closed = new Promise<void>((resolve) => net.close(() => resolve()));
    // Each connection is told to go away and ends by itself after its last call. grpc-js says too early that all have.
    server.tryShutdown(() => {});
    const late = setTimeout(() => {
      for (const socket of sockets) socket.destroy();
    }, graceMs);
    await closed;
    clearTimeout(late);
    server.forceShutdown();
  };
  return { ...addressOf(net), setServing, close, [Symbol.asyncDispose]: () => close(0) };
}

function credentialsOf(tls: TlsKeys | null): ServerCredentials {
  if (tls === null) return ServerCredentials.createInsecure();
  return ServerCredentials.createSsl(null, [{ cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) }]);
}

/** Messages stay bytes at the border to grpc-js: the pipeline reads them after it knows the caller. */
const asIs = (bytes: Buffer): Buffer => bytes;

function* servicesOf(parts: GrpcDoorParts): Iterable<[ServiceDefinition, UntypedServiceImplementation]> {
  const byService = new Map<string, Endpoint[]>();
  for (const endpoint of parts.endpoints.values()) {
    const name = endpoint.method.parent.typeName;
    byService.set(name, [...(byService.get(name) ?? []), endpoint]);
  }
  for (const endpoints of byService.values()) {
    const definition: Record<string, MethodDefinition<Buffer, Buffer>> = {};
    const implementation: UntypedServiceImplementation = {};
    for (const endpoint of endpoints) {
      const { method, rpcPath } = endpoint;
      const kind = method.methodKind;
      definition[method.name] = {
        path: rpcPath,
        requestStream: kind === 'client_streaming' || kind === 'bidi_streaming',
        responseStream: kind === 'server_streaming' || kind === 'bidi_streaming',
        requestSerialize: asIs,
        requestDeserialize: asIs,
        responseSerialize: asIs,
        responseDeserialize: asIs,
      };
      implementation[method.name] = handlerOf(parts, endpoint);
    }
    yield [definition, implementation];
  }
}

function handlerOf(
  parts: GrpcDoorParts,
  endpoint: Endpoint,
):
  | handleUnaryCall<Buffer, Buffer>
  | handleServerStreamingCall<Buffer, Buffer>
  | handleBidiStreamingCall<Buffer, Buffer> {
  const { pipeline, clientAddress, now } = parts;
  switch (endpoint.method.methodKind) {
    case 'unary':
      return (call, callback) => {
        const exchange = new GrpcUnaryExchange(call, callback, endpoint, clientAddress, now);
        call.on('cancelled', () => pipeline.running.hangUp(exchange));
        void pipeline.unary(endpoint, exchange);
      };
    case 'server_streaming': {
      const serve: handleServerStreamingCall<Buffer, Buffer> = (call) => {
        const exchange = new GrpcStreamExchange(call, endpoint, clientAddress, now);
        call.on('cancelled', () => pipeline.running.hangUp(exchange));
        void pipeline.serverStream(endpoint, exchange);
      };
      return serve;
    }
    case 'bidi_streaming': {
      const serve: handleBidiStreamingCall<Buffer, Buffer> = (call) => {
        const exchange = new GrpcBidiExchange(call, endpoint, clientAddress, now);
        call.on('cancelled', () => pipeline.running.hangUp(exchange));
        void pipeline.bidi(endpoint, exchange);
      };
      return serve;
    }
    default:
      throw new TypeError(`${endpoint.rpcPath}: no door serves ${endpoint.method.methodKind}`);
  }
}
