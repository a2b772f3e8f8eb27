import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import {
  type ClientHttp2Stream,
  connect,
  constants,
  createServer as createHttp2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Server, Socket } from 'node:net';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { onLoopback } from '../../support/loopback.ts';

/** Forwards each HTTP request unchanged to the next of several servers. */
export async function openSpreadingHttp(
  ports: readonly number[],
): Promise<{ readonly port: number } & AsyncDisposable> {
  const agent = new Agent({ keepAlive: true });
  let turn = 0;
  // Clients read how long the nodes keep a connection, and so long this one has to keep it too.
  const kept = { keepAliveTimeout: limits.keepAliveTimeoutMs, keepAliveTimeoutBuffer: limits.keepAliveBufferMs };
  const server = createServer(kept, (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const port = ports[turn++ % ports.length];
    const { method, url: path, rawHeaders } = incoming;
    const passed = request({ host: '127.0.0.1', port, method, path, headers: rawHeaders, agent, setHost: false });
    passed.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      answer.pipe(outgoing);
    });
    // A broken connection to the server breaks the one to the client.
    passed.on('error', () => outgoing.destroy());
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) passed.destroy();
    });
    incoming.pipe(passed);
  });
  return listening(server, () => agent.destroy());
}

/** Forwards each gRPC call to the next of several servers. */
export function openSpreadingGrpc(ports: readonly number[]): Promise<{ readonly port: number } & AsyncDisposable> {
  let turn = 0;
  const server = createHttp2Server();
  server.on('session', (front) => {
    // Each client has its own connections to the servers, so that a client that does not read delays no other one.
    const behind = ports.map((port) => connect(`http://127.0.0.1:${port}`).on('error', () => {}));
    front
      .on('error', () => {})
      .on('close', () => {
        for (const session of behind) session.destroy();
      });
    front.on('stream', (near, headers) => {
      const session = behind[turn++ % behind.length];
      if (session !== undefined) passStream(near, session.request(headers, { endStream: false }));
    });
  });
  return listening(server, () => {});
}

function passStream(near: ServerHttp2Stream, far: ClientHttp2Stream): void {
  let trailers: IncomingHttpHeaders = {};
  far.on('trailers', (sent) => {
    trailers = sent;
  });
  far.on('response', (answer, flags) => {
    const isAll = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    if (near.destroyed) return;
    near.respond(answer, { endStream: isAll, waitForTrailers: !isAll });
    if (!isAll) far.pipe(near);
  });
  near.on('wantTrailers', () => near.sendTrailers(trailers));
  near.on('error', () => {}).on('close', () => far.close(constants.NGHTTP2_CANCEL));
  far
    .on('error', () => {})
    .on('close', () => {
      if (far.rstCode !== constants.NGHTTP2_NO_ERROR) near.close(far.rstCode);
    });
  near.pipe(far);
}

async function listening(server: Server, end: () => void): Promise<{ readonly port: number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  return {
    port: await onLoopback(server),
    async [Symbol.asyncDispose]() {
      end();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
