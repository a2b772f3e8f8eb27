import type { Socket } from 'node:net';
import { type handleBidiStreamingCall, Server, status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { NodeId } from '../../src/actors/routing/placement.ts';
import { guardStreams } from '../../src/rpc/grpc/guarded-streams.ts';
import { answersFrameMaxBytes, commandsFrameMaxBytes, exchangeMethod } from './exchange-method.ts';
import { type Connection, type ExchangeCall, type IncomingParts, IncomingStream } from './incoming-stream.ts';
import { type PeerSecurity, serverCredentials } from './security.ts';
import { serverWire } from './wire.ts';

/** A node opens one stream, and sometimes its successor too. */
const streamsMax = 4;

export interface PeerServiceParts extends IncomingParts {
  readonly self: NodeId;
  readonly security: PeerSecurity;
}

/** Receives the commands of other nodes, over connections of the internal listener. */
interface PeerServer {
  /** Serves a connection. `proved` is called once the other side has proved that it is a node of this cluster. */
  takeConnection(socket: Socket, proved: () => void): void;
  close(): void;
}

export function peerServer(parts: PeerServiceParts): PeerServer {
  const { self, security } = parts;
  const server = guardStreams(
    new Server({
      'grpc.max_receive_message_length': commandsFrameMaxBytes,
      'grpc.max_send_message_length': answersFrameMaxBytes,
      'grpc.max_concurrent_streams': streamsMax,
      'grpc.keepalive_time_ms': 10_000,
      'grpc.keepalive_timeout_ms': 5_000,
      'grpc.enable_channelz': 0,
    }),
  );
  /** By remote address and port, which is all that grpc-js tells a call about its connection. */
  const connections = new Map<string, Connection>();
  const serve = (call: ExchangeCall): void => {
    const wire = serverWire(security, self, call.metadata);
    if (wire === null) {
      call.emit('error', { code: status.UNAUTHENTICATED, details: 'Not a node of this cluster.' });
      return;
    }
    call.sendMetadata(wire.answer);
    const connection = connections.get(call.getPeer());
    if (connection !== undefined) new IncomingStream(parts, call, wire, connection);
  };
  const exchange: handleBidiStreamingCall<Buffer, Buffer> = serve;
  const implementation: UntypedServiceImplementation = { exchange };
  server.addService({ exchange: exchangeMethod }, implementation);
  const injector = server.createConnectionInjector(serverCredentials(security));
  return {
    takeConnection(socket, proved) {
      const from = `${socket.remoteAddress}:${socket.remotePort}`;
      const connection = { proved, hangUp: () => socket.destroy() };
      connections.set(from, connection);
      // A new connection may have come from the same port before the end of the old one is told.
      socket.on('close', () => {
        if (connections.get(from) === connection) connections.delete(from);
      });
      injector.injectConnection(socket);
    },
    close() {
      injector.destroy();
      server.forceShutdown();
    },
  };
}
