import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createNetServer, type Socket } from 'node:net';
import { ConnectionPlaces } from '../runtime/limits/connection-places.ts';
import { limits } from '../runtime/limits/limits.ts';
import type { Metrics } from '../runtime/telemetry/metrics.ts';
import { addressOf, type Listener, listenOn } from './listening.ts';

/** `reason` says in words for operators why the node may not get calls. */
export interface Readiness {
  readonly ready: boolean;
  readonly reason?: string;
}

interface InternalListenerParts {
  readonly metrics: Pick<Metrics, 'registry'>;
  /** Must end by its own deadline. */
  readiness(): Promise<Readiness>;
  /** Further GET paths, for example /cluster. Each answers JSON. */
  readonly pages?: ReadonlyMap<string, () => Promise<object>>;
  /**
   * Takes over connections that begin like HTTP/2 or TLS, as those of other nodes do, and calls `proved` once the other
   * side has proved to be a node. If absent, these connections end as bad requests.
   */
  readonly takeConnection?: (socket: Socket, proved: () => void) => void;
}

const tlsFirstByte = 0x16;
/** The first bytes of an HTTP/2 connection (RFC 9113, section 3.4). */
const http2Beginning = 'PRI';

/** Nodes, probes and metrics need a few dozen connections. */
const bounds = { strangersMax: 256, strangersPerAddressMax: 64, silentMaxMs: limits.headersTimeoutMs };
/** All connections together, nodes of the cluster included. */
const connectionsMax = 1_024;

/**
 * Opens the internal port: /metrics (Prometheus), /health/live, /health/ready. It must never be public, and has no TLS
 * on a loopback address. An HTTP/1 connection has one request and is closed at most 30 s after it arrived: a connection
 * that stays open could hold a half-sent request or a half-read answer for ever.
 */
export async function openInternalListener(
  parts: InternalListenerParts,
  host: string,
  port: number,
): Promise<Listener> {
  const places = new ConnectionPlaces(bounds);
  const http = createServer({ maxHeaderSize: limits.headersMaxBytes }, (request, response) => {
    places.endAfter(request.socket, limits.requestTimeoutMs);
    response.shouldKeepAlive = false;
    answer(parts, request, response).catch(() => {
      if (!response.headersSent) send(response, 500, { status: 'failed' });
      else response.destroy();
    });
  });
  http.maxRequestsPerSocket = 1;
  const listening = createNetServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    places.take(socket);
    sort(socket, parts.takeConnection, {
      http: () => http.emit('connection', socket),
      proved: () => places.keep(socket),
    });
  });
  listening.maxConnections = connectionsMax;
  await listenOn(listening, host, port);
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => listening.close(() => resolve()));
    places.end();
    await closed;
  };
  return { ...addressOf(listening), close, [Symbol.asyncDispose]: close };
}

/** Tells peers and HTTP/1 clients on the same port apart, by the first bytes of a connection. */
function sort(
  socket: Socket,
  takeConnection: InternalListenerParts['takeConnection'],
  to: { readonly http: () => void; readonly proved: () => void },
): void {
  socket.once('readable', () => {
    const first: Buffer | null = socket.read();
    if (first === null) return;
    socket.unshift(first);
    const isPeer = first[0] === tlsFirstByte || first.toString('latin1', 0, 3) === http2Beginning;
    if (isPeer && takeConnection !== undefined) takeConnection(socket, to.proved);
    else to.http();
  });
}

async function answer(parts: InternalListenerParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  request.resume();
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return send(response, 405, { status: 'method not allowed' });
  }
  if (path === '/health/live') return send(response, 200, { status: 'live' });
  if (path === '/health/ready') {
    const { ready, reason } = await parts.readiness();
    return send(response, ready ? 200 : 503, ready ? { status: 'ready' } : { status: 'not ready', reason });
  }
  if (path === '/metrics') {
    const text = await parts.metrics.registry.metrics();
    response.writeHead(200, { 'content-type': parts.metrics.registry.contentType }).end(text);
    return;
  }
  const page = parts.pages?.get(path);
  if (page !== undefined) return send(response, 200, await page());
  return send(response, 404, { status: 'not found' });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body));
}
