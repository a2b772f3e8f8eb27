import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { systemClock } from '../../src/runtime/clock/system-clock.ts';
import type { TargetPolicy } from '../../src/service/webhooks/webhook-target.ts';
import { createPoster, type PostResult } from '../../src/webhooks/post/http-post.ts';
import { dnsLookup, type NameLookup } from '../../src/webhooks/post/name-lookup.ts';
import { receiverConnector } from '../../src/webhooks/post/receiver-connect.ts';
import { onLoopback } from './loopback.ts';

export const production: TargetPolicy = { production: true, ownPorts: () => new Set(), ownAddresses: () => [] };
export const development: TargetPolicy = { production: false, ownPorts: () => new Set(), ownAddresses: () => [] };
export const servers: { close(): unknown }[] = [];
/** Closes all servers and posters. Call it at the end of a suite. */
export async function closeServers(): Promise<void> {
  await Promise.all(servers.splice(0).map((server) => server.close()));
}

/** A listener on every address of this machine that counts the connections it gets. */
export async function countingListener(host = '::', at = 0): Promise<{ port: number; connections: () => number }> {
  let count = 0;
  const sockets = new Set<Socket>();
  const server: Server = createTcpServer((socket) => {
    count += 1;
    sockets.add(socket);
    socket.on('error', () => {}).end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
  });
  await new Promise<void>((resolve, reject) => server.on('error', reject).listen(at, host, resolve));
  servers.push({ close: () => server.close() });
  return { port: (server.address() as AddressInfo).port, connections: () => count };
}

/** Returns the port that the server listens on. `closeServers` closes it. */
export async function listenOnAny(server: HttpServer): Promise<number> {
  servers.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return onLoopback(server);
}

export async function receiver(
  handle: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void,
): Promise<{ url: string; port: number; sockets: () => number }> {
  let sockets = 0;
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => chunks.push(chunk)).on('end', () => handle(request, response, Buffer.concat(chunks)));
  });
  server.on('connection', () => {
    sockets += 1;
  });
  const port = await listenOnAny(server);
  return { url: `http://127.0.0.1:${port}/hook?a=1`, port, sockets: () => sockets };
}

export function posterFor(policy: TargetPolicy, lookup: NameLookup = dnsLookup()) {
  const poster = createPoster(receiverConnector({ policy, lookup, clock: systemClock }), 4);
  servers.push({ close: () => poster[Symbol.asyncDispose]() });
  const post = (url: string, signal: AbortSignal = AbortSignal.timeout(5_000)): Promise<PostResult> =>
    poster.post({ url, headers: { 'content-type': 'application/json' }, body: Buffer.from('{}'), signal });
  return { post };
}
