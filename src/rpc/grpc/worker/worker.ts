import type { EventEmitter } from 'node:events';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';
import { createServer as createTlsServer } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';
import {
  ServerCredentials,
  type ServerDuplexStream,
  type ServerWritableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { Slab } from '../../../runtime/collections/slab.ts';
import { collector, collectWhenIdle } from '../../../runtime/limits/idle-collection.ts';
import { limits } from '../../../runtime/limits/limits.ts';
import { MemoryBudget } from '../../../runtime/limits/memory-budget.ts';
import type { TlsKeys } from '../../http/server.ts';
import { inodeOf, unsentBytes } from '../../http/socket-state.ts';
import { acceptWaiting, addressOf, listenOn } from '../../listening.ts';
import { Connections } from '../connections.ts';
import { backlogKib, FrameBacklog } from '../frame-backlog.ts';
import { FrameReader, FrameWriter, type WorkerCall, workerEvent } from '../frames.ts';
import type { GrpcMethod, GrpcWorkerData, WorkerCommand, WorkerEvent } from '../worker-messages.ts';
import type { CallStream } from './call-stream.ts';
import { asIs, callStreamOf } from './call-streams.ts';
import { Health } from './health.ts';
import { addReflection } from './reflection.ts';
import {
  headerListOf,
  type StreamCall,
  type UnaryCall,
  WorkerArrivingCall,
  WorkerStreamCall,
  WorkerUnaryCall,
} from './worker-calls.ts';
import { AnsweringServer } from './worker-refusals.ts';

/** The worker: HTTP/2, TLS and gRPC. The main thread carries out the calls (listener.ts). */
const main = parentPort;
if (main === null) throw new Error('this runs as a thread of a gRPC transport');
const {
  host,
  port,
  tls,
  methods,
  bounds,
  connectionsMax,
  memory,
  backlog: sharedBacklog,
  closed: sharedClosed,
} = workerData as GrpcWorkerData;

const backlog = new FrameBacklog(sharedBacklog);
/** How long the rest of this iteration may block, ms: the worker must also answer probes and send keepalives. */
let mayWaitMs: number = limits.grpcBacklogWaitMs;
const writer = new FrameWriter(
  (frames, count) => {
    const kib = backlogKib(count, frames.length);
    main.postMessage(frames, [frames.buffer]);
    mayWaitMs -= backlog.addAndWait(kib, limits.grpcBacklogKib, mayWaitMs);
  },
  () => {
    if (mayWaitMs === limits.grpcBacklogWaitMs) return;
    mayWaitMs = limits.grpcBacklogWaitMs;
    connections.nowMs = performance.now();
  },
);
const drainLookMs = 10;
/** If the process grows by this, an idle worker stops for some 80 ms, at most once in 30 s. */
const processGrowthBytes = 48 * 1024 * 1024;
const calls = new Slab<WorkerCall>();
const nothing = Buffer.alloc(0);

const connections = new Connections(bounds, connectionsMax, MemoryBudget.of(memory));
const methodsByPath = new Map(methods.map((method) => [method.path, method]));
const server = new AnsweringServer(
  { calls, writer, connections, methods: methodsByPath },
  {
    'grpc.max_receive_message_length': limits.grpcReceiveMaxBytes,
    'grpc.max_send_message_length': limits.grpcSendMaxBytes,
    'grpc.max_concurrent_streams': limits.grpcStreamsMax,
    'grpc-node.max_session_memory': limits.grpcSessionMemoryMb,
    'grpc.keepalive_time_ms': limits.grpcKeepaliveMs,
    'grpc.keepalive_timeout_ms': limits.grpcKeepaliveTimeoutMs,
    'grpc.max_connection_idle_ms': limits.grpcIdleMs,
    'grpc.enable_channelz': 0,
  },
);
for (const method of methods) register(method);
const serviceNames = [...new Set(methods.map(({ path }) => path.split('/')[1] ?? ''))];
const health = new Health(serviceNames);
health.addTo(server);
addReflection(server, serviceNames);
collectWhenIdle({ processGrowthBytes });

let isClosing = false;
// The worker opens the sockets itself, to bound their number, their handshakes and how long a close takes. TLS is
// terminated before grpc-js gets a socket.
const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
const net = listenerOf(tls, (socket) => {
  socket.on('error', () => socket.destroy());
  // It would get no GOAWAY any more.
  if (isClosing) return void socket.destroy();
  injector.injectConnection(socket);
});
net.on('connection', (socket: Socket) => connections.places.take(socket));
/** TLS handshakes under way. */
let handshakes = 0;
if (tls !== null) {
  const ended = (): void => {
    handshakes -= 1;
  };
  net.on('connection', () => {
    handshakes += 1;
  });
  net.on('secureConnection', ended).on('tlsClientError', ended);
}

main.on('message', (message: Uint8Array<ArrayBuffer> | WorkerCommand) => {
  if (message instanceof Uint8Array) handle(new FrameReader(message));
  else if (message.command === 'set_serving') health.setServing(message.serving);
  else void close(message.graceMs);
});

try {
  await listenOn(net, host, port);
  post({ event: 'listening', ...addressOf(net) });
} catch (error) {
  const { message, cause } = error as Error;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : null;
  post({ event: 'listen_failed', message, code });
}

function post(event: WorkerEvent): void {
  main?.postMessage(event);
}

function handle(frames: FrameReader): void {
  while (!frames.isEmpty) {
    const kind = frames.u8();
    const number = frames.u32();
    const call = calls.get(number);
    if (call === undefined) throw new Error(`a frame of kind ${kind} for call ${number}, which is over`);
    if (call.handle(kind, frames)) calls.remove(number);
  }
}

function watch(call: EventEmitter, number: number, workerCall: WorkerCall): void {
  call.on('cancelled', () => {
    if (calls.get(number) === workerCall) writer.frame(workerEvent.gone, number);
  });
}

async function close(graceMs: number): Promise<void> {
  const lateMs = performance.now() + graceMs;
  health.setServing(false);
  await acceptWaiting(net, graceMs);
  const closed = new Promise<void>((resolve) => net.close(() => resolve()));
  const shakenMs = Math.min(performance.now() + limits.drainIdleMs, lateMs);
  while (handshakes > 0 && performance.now() < shakenMs) await delay(drainLookMs);
  // Each connection gets a GOAWAY and ends after its last call. The callback of grpc-js comes too early.
  server.tryShutdown(() => {});
  isClosing = true;
  let calledMs = performance.now();
  const look = setInterval(() => {
    const nowMs = performance.now();
    if (connections.openCalls > 0) calledMs = nowMs;
    if (nowMs >= lateMs) connections.places.destroyAll();
    else if (nowMs >= calledMs + limits.drainLingerMs) {
      calledMs = nowMs;
      void endRead();
    }
  }, drainLookMs);
  await closed;
  clearInterval(look);
  server.forceShutdown();
  // The sockets close in this iteration of the event loop, and what is left of their streams goes in the next one.
  for (let at = 0; at < 3; at += 1) await immediate();
  // A thread that ends deletes sessions before their streams, which may end the process: see session-memory.ts. A
  // collection deletes the streams first.
  collector('regular')();
  const shared = new Int32Array(sharedClosed);
  Atomics.store(shared, 0, 1);
  Atomics.notify(shared, 0);
  writer.flush();
  post({ event: 'closed' });
}

/** A client that is silent never ends its connection. One that still reads keeps it: a reset would take the rest. */
async function endRead(): Promise<void> {
  const sockets = [...connections.places.sockets()].map((socket) => ({ socket, inode: inodeOf(socket) }));
  const unsent = await unsentBytes(new Set(sockets.map(({ inode }) => inode)));
  if (connections.openCalls > 0) return;
  for (const { socket, inode } of sockets) if (!unsent.get(inode)) socket.destroy();
}

function listenerOf(keys: TlsKeys | null, take: (socket: Socket) => void): NetServer {
  if (keys === null) return createServer({ noDelay: true }, take);
  const { cert, key } = keys;
  const handshakeTimeout = limits.tlsHandshakeTimeoutMs;
  const server = createTlsServer({ cert, key, ALPNProtocols: ['h2'], handshakeTimeout, noDelay: true }, take);
  // Node only reports a handshake that failed or took too long.
  return server.on('tlsClientError', (_, socket) => socket.destroy());
}

function register(method: GrpcMethod): void {
  const { path } = method;
  const makeStream = (call: StreamCall) => (stream: CallStream) => new WorkerStreamCall(call, stream, writer);
  const unary = (call: UnaryCall, callback: sendUnaryData<Buffer>) =>
    begin(method, call, call.request, () => new WorkerUnaryCall(call, callback));
  const serverStream = (call: ServerWritableStream<Buffer, Buffer>) =>
    begin(method, call, call.request, makeStream(call));
  const bidi = (call: ServerDuplexStream<Buffer, Buffer>) => begin(method, call, nothing, makeStream(call));
  if (method.kind === 'unary') server.register(path, unary, asIs, asIs, 'unary');
  else if (method.kind === 'server_streaming') server.register(path, serverStream, asIs, asIs, 'serverStream');
  else server.register(path, bidi, asIs, asIs, 'bidi');
}

/** Reports a new call to the main thread; if it knows the call already, that its request is complete. */
function begin<T extends WorkerUnaryCall | WorkerStreamCall>(
  method: GrpcMethod,
  call: UnaryCall | StreamCall,
  request: Buffer,
  make: (stream: CallStream) => T,
): void {
  const stream = callStreamOf(call);
  if (stream.isOver) return;
  const workerCall = make(stream);
  const headers = headerListOf(call);
  const arriving = stream.workerCall;
  if (method.kind !== 'bidi_streaming') stream.received();
  if (arriving instanceof WorkerArrivingCall) {
    arriving.begin(workerCall);
    workerCall.number = arriving.number;
    watch(call, workerCall.number, arriving);
    writer.frame(workerEvent.request, workerCall.number).bytes(request);
    return;
  }
  workerCall.number = calls.add(workerCall);
  stream.begun(workerCall);
  watch(call, workerCall.number, workerCall);
  writer
    .frame(workerEvent.begun, workerCall.number)
    .u32(method.number)
    .f64(Number(call.getDeadline()))
    .texts(headers)
    .bytes(request);
}
