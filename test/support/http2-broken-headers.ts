import { once } from 'node:events';
import { connect as connectHttp2, createServer } from 'node:http2';
import { type AddressInfo, createServer as createRawServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { keepSessions } from '../../src/rpc/grpc/session-memory.ts';
import { refusedHeaders, secondHeaders } from './attacks/broken-headers.ts';
import {
  callHeaders,
  endHeaders,
  endStream,
  frame,
  frameType,
  headerBlock,
  preface,
  settings,
  windowUpdate,
} from './attacks/http2-frames.ts';
import { openSocket } from './raw-http.ts';

/**
 * A program: `node --expose-gc http2-broken-headers.ts KIND [kept]`. Clients of a bare HTTP/2 server send headers of a
 * stream that are refused, or that begin a second time and do not end. V8 collects at the moments at which Node may end
 * the process. `kept`: with what the service does against it.
 */
const [kind = '', kept = ''] = process.argv.slice(2);
const collect = (globalThis as typeof globalThis & { readonly gc: () => void }).gc;
const rounds = 4;
const headers = callHeaders('/a');
const begunHeaders = secondHeaders(0);
const begun = Buffer.concat([frame(frameType.headers, endHeaders, 1, headers), begunHeaders]);
const server = createServer();
if (kept === 'kept') keepSessions(server);
server.on('session', (session) => session.on('error', () => {}));
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;

async function opened(more: Buffer = Buffer.alloc(0)): Promise<Socket> {
  const socket = openSocket(port);
  await once(socket, 'connect');
  socket.write(Buffer.concat([preface, settings({ 4: 2 ** 31 - 1 }), frame(frameType.settings, 1, 0), more]));
  return socket;
}

/** The connection ends in the same read, and V8 collects before the end of that iteration of the event loop. */
async function inOneIteration(attack: Buffer): Promise<void> {
  server.on('stream', (stream, { 'x-collect': mayCollect }) => {
    stream.on('error', () => {});
    if (mayCollect !== undefined) collect();
  });
  for (let round = 0; round < rounds; round += 1) {
    const sockets = [await opened(), await opened(), await opened()];
    for (const socket of sockets) socket.resume();
    await delay(20);
    const collecting = Buffer.concat([headers, headerBlock({ 'x-collect': '1' })]);
    const [first, attacker, last] = sockets;
    first?.write(frame(frameType.headers, endHeaders | endStream, 1, collecting));
    attacker?.write(attack);
    last?.write(frame(frameType.headers, endHeaders | endStream, 1, collecting));
    // All is there when the loop polls.
    const from = performance.now();
    while (performance.now() - from < 3);
    await delay(20);
    for (const socket of sockets) socket.destroy();
  }
}

/** The stream or session is ended while data of it waits in the socket, and V8 collects long after. */
async function whileWriting(ended: 'stream' | 'session'): Promise<void> {
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.respond({ ':status': 200 });
    stream.write(Buffer.alloc(8 * 1024 * 1024));
    setTimeout(() => (ended === 'stream' ? stream : stream.session)?.destroy(), 150);
  });
  for (let round = 0; round < rounds; round += 1) {
    const sockets: Socket[] = [];
    for (let at = 0; at < 6; at += 1) {
      const socket = await opened(windowUpdate(0, 2 ** 31 - 1 - 65_535));
      socket.pause().write(begun);
      sockets.push(socket);
    }
    await delay(300);
    for (const socket of sockets) socket.destroy();
    await delay(100);
    collect();
  }
}

/** The same as `inOneIteration`, for the streams of clients. */
async function ofClients(): Promise<void> {
  const answer = frame(frameType.headers, endHeaders, 1, headerBlock({ ':status': '200' }));
  const taken: Socket[] = [];
  const raw = createRawServer((socket) => {
    socket.on('error', () => {}).resume();
    socket.write(Buffer.concat([settings(), frame(frameType.settings, 1, 0)]));
    taken.push(socket);
  }).listen(0, '127.0.0.1');
  await once(raw, 'listening');
  for (let round = 0; round < rounds; round += 1) {
    taken.length = 0;
    for (let at = 0; at < 3; at += 1) {
      const session = connectHttp2(`http://127.0.0.1:${(raw.address() as AddressInfo).port}`).on('error', () => {});
      await once(session, 'remoteSettings');
      const request = session
        .request({ ':path': '/' })
        .on('error', () => {})
        .on('response', () => at !== 1 && collect());
      request.resume();
    }
    await delay(20);
    for (const [at, socket] of taken.entries())
      socket.write(at === 1 ? Buffer.concat([answer, begunHeaders, windowUpdate(0, 0)]) : answer);
    await delay(20);
    for (const socket of taken) socket.destroy();
  }
}

if (kind === 'client') await ofClients();
else if (kind === 'iteration') await inOneIteration(Buffer.concat([begun, windowUpdate(0, 0)]));
// Node tells nobody of a stream that it refuses.
else if (kind === 'refused') await inOneIteration(refusedHeaders(headers));
else await whileWriting(kind === 'stream' ? 'stream' : 'session');
process.exit(0);
