import { setImmediate as immediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { limits } from '../../../runtime/limits/limits.ts';
import type { MemoryBudget } from '../../../runtime/limits/memory-budget.ts';
import type { ClientAddress } from '../../call/client-address.ts';
import type { Endpoint } from '../../endpoints/endpoint.ts';
import type { TlsKeys } from '../../http/server.ts';
import type { Listener } from '../../listening.ts';
import type { Pipeline } from '../../pipeline/pipeline.ts';
import type { GrpcBounds } from '../connections.ts';
import { backlogKib, FrameBacklog } from '../frame-backlog.ts';
import { FrameReader, FrameWriter, workerEvent } from '../frames.ts';
import type { GrpcMethod, GrpcWorkerData, WorkerCommand, WorkerEvent } from '../worker-messages.ts';
import { GrpcBidiCall, type GrpcCallParts, GrpcStreamCall, GrpcUnaryCall } from './grpc-call.ts';
import { answerRefused, cutOf, noteAnswered, type RefusedCallParts } from './refused-calls.ts';

interface GrpcListenerParts extends RefusedCallParts {
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly pipeline: Pipeline;
  readonly clientAddress: ClientAddress;
  readonly tls: TlsKeys | null;
  readonly bounds: GrpcBounds;
  readonly connectionsMax: number;
  readonly memory: MemoryBudget;
  now(): number;
}

export interface GrpcListener extends Listener {
  /** Sets what grpc.health.v1 answers, for the whole server and each service. */
  setServing(serving: boolean): void;
}

const script = new URL(
  import.meta.url.endsWith('.ts') ? '../worker/worker.ts' : '../worker/worker.js',
  import.meta.url,
);

/**
 * Two semi-spaces of 16 MiB, and half as much again for large objects. A busy worker fills one in 200 ms, when most
 * calls are over. With spaces of 8 MiB there was a collection of the whole heap each second
 * (docs/adr/0032-grpc-has-a-thread-of-its-own.md).
 */
const resourceLimits = { maxYoungGenerationSizeMb: 48 };

/**
 * Opens the gRPC port: every method of the API, reflection, and grpc.health.v1. A worker (worker.ts) listens and speaks
 * HTTP/2, because that is as much work as all that the main thread does for a call.
 */
export async function openGrpcListener(parts: GrpcListenerParts, host: string, port: number): Promise<GrpcListener> {
  const endpoints = [...parts.endpoints.values()];
  const backlog = new FrameBacklog();
  const closed = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const workerData: GrpcWorkerData = {
    ...{ host, port, tls: parts.tls, bounds: parts.bounds, memory: parts.memory.shared, backlog: backlog.shared },
    closed,
    connectionsMax: parts.connectionsMax,
    methods: endpoints.map(grpcMethod),
  };
  const worker = new Worker(script, { workerData, execArgv: [], resourceLimits, stdout: false, stderr: false });
  const thread = new Thread(worker, { backlog, closed }, parts, endpoints);
  const address = await thread.listening;
  return {
    ...address,
    setServing: (serving) => thread.post({ command: 'set_serving', serving }),
    close: (graceMs) => thread.close(graceMs),
    [Symbol.asyncDispose]: () => thread.close(0),
  };
}

/** Those that listen. */
const threads = new Set<Thread>();
process.on('exit', () => {
  for (const thread of threads) thread.closeAtExit();
  const endMs = performance.now() + limits.grpcExitMs;
  for (const thread of threads) thread.waitUntilClosed(endMs - performance.now());
});

interface SharedWithWorker {
  readonly backlog: FrameBacklog;
  readonly closed: SharedArrayBuffer;
}

/** The worker as the main thread sees it. If it fails, the error is thrown and ends the process. */
class Thread {
  readonly #worker: Worker;
  readonly #parts: GrpcListenerParts;
  /** By the worker's method numbers. */
  readonly #endpoints: readonly Endpoint[];
  readonly #writer: FrameWriter;
  readonly #callParts: GrpcCallParts;
  readonly #shared: SharedWithWorker;
  /** Not handled yet, oldest first. */
  #arrivals: FrameReader[] = [];
  /** By call number. The worker reuses a number once its call has ended. */
  readonly #calls: (GrpcUnaryCall | GrpcStreamCall | undefined)[] = [];
  readonly #listening = Promise.withResolvers<{ readonly host: string; readonly port: number }>();
  readonly #closed = Promise.withResolvers<void>();
  #isListening = false;
  #isEnding = false;

  constructor(worker: Worker, shared: SharedWithWorker, parts: GrpcListenerParts, endpoints: readonly Endpoint[]) {
    this.#worker = worker;
    this.#shared = shared;
    this.#parts = parts;
    this.#endpoints = endpoints;
    this.#writer = new FrameWriter((frames) => worker.postMessage(frames, [frames.buffer]));
    this.#callParts = { ...parts, writer: this.#writer, ended: this.#ended };
    worker.on('message', (message: Uint8Array<ArrayBuffer> | WorkerEvent) => {
      if (message instanceof Uint8Array) this.#arrived(new FrameReader(message));
      else this.#handleEvent(message);
    });
    worker.on('error', (error) => this.#fail(error));
    worker.on('exit', () => this.#fail(new Error('the thread of the gRPC port has ended')));
  }

  #fail(error: unknown): void {
    threads.delete(this);
    if (this.#isEnding) return;
    if (this.#isListening) throw error;
    this.#isEnding = true;
    this.#listening.reject(error);
  }

  get listening(): Promise<{ readonly host: string; readonly port: number }> {
    return this.#listening.promise;
  }

  post(command: WorkerCommand): void {
    this.#writer.flush();
    this.#worker.postMessage(command);
  }

  async close(graceMs: number): Promise<void> {
    this.post({ command: 'close', graceMs });
    await this.#closed.promise;
    // Frames that the worker posted before `closed` are handled first.
    while (this.#arrivals.length > 0) await immediate();
    for (const incoming of this.#calls) if (incoming !== undefined) this.#gone(incoming);
    await this.#terminate();
  }

  /** Leaves out the frames that wait: what writes them may be what failed. */
  closeAtExit(): void {
    this.#worker.postMessage({ command: 'close', graceMs: 0 } satisfies WorkerCommand);
  }

  /** Blocks, since nothing that the worker posts arrives while the process exits. */
  waitUntilClosed(ms: number): void {
    Atomics.wait(new Int32Array(this.#shared.closed), 0, 0, Math.max(0, ms));
  }

  async #terminate(): Promise<void> {
    this.#isEnding = true;
    await this.#worker.terminate();
  }

  #handleEvent(event: WorkerEvent): void {
    if (event.event === 'closed') this.#closed.resolve();
    else if (event.event === 'listening') {
      this.#isListening = true;
      threads.add(this);
      this.#listening.resolve({ host: event.host, port: event.port });
    } else {
      const cause = Object.assign(new Error(event.message), { code: event.code });
      void this.#terminate();
      this.#listening.reject(new Error(event.message, { cause }));
    }
  }

  /**
   * Node delivers many messages in one iteration of the event loop. They are handled in slices, with other work in
   * between.
   */
  #arrived(frames: FrameReader): void {
    if (this.#arrivals.push(frames) === 1) setImmediate(this.#handleArrivals);
  }

  #handleArrivals = (): void => {
    const arrivals = this.#arrivals;
    const endMs = performance.now() + limits.grpcFrameSliceMs;
    let handled = 0;
    try {
      for (const frames of arrivals) {
        handled += 1;
        this.#shared.backlog.remove(backlogKib(this.#handle(frames), frames.length));
        if (performance.now() > endMs) break;
      }
    } finally {
      this.#arrivals = arrivals.slice(handled);
      if (this.#arrivals.length > 0) setImmediate(this.#handleArrivals);
    }
  };

  /** Returns the number of frames. */
  #handle(frames: FrameReader): number {
    let count = 0;
    while (!frames.isEmpty) {
      count += 1;
      const kind = frames.u8();
      const number = frames.u32();
      if (kind === workerEvent.begun || kind === workerEvent.arriving)
        this.#begin(number, kind === workerEvent.arriving, frames);
      else if (kind === workerEvent.refused) answerRefused(this.#parts, number, frames, this.#writer);
      else if (kind === workerEvent.noted) noteAnswered(this.#parts, frames);
      else this.#goOn(this.#calls[number], kind, frames);
    }
    return count;
  }

  #begin(number: number, isArriving: boolean, frames: FrameReader): void {
    const endpoint = this.#endpoints[frames.u32()];
    if (endpoint === undefined) throw new Error('the worker reported an unknown method');
    const { pipeline } = this.#parts;
    const given = [this.#callParts, endpoint, number, isArriving, frames] as const;
    switch (endpoint.method.methodKind) {
      case 'unary':
        void pipeline.unary(endpoint, this.#keep(number, new GrpcUnaryCall(...given)));
        return;
      case 'server_streaming':
        void pipeline.serverStream(endpoint, this.#keep(number, new GrpcStreamCall(...given)));
        return;
      default:
        void pipeline.bidi(endpoint, this.#keep(number, new GrpcBidiCall(...given)));
    }
  }

  #keep<T extends GrpcUnaryCall | GrpcStreamCall>(number: number, incoming: T): T {
    this.#calls[number] = incoming;
    return incoming;
  }

  #ended = (number: number): void => {
    this.#calls[number]?.release();
    this.#calls[number] = undefined;
  };

  /** `incoming` is undefined if the call was answered meanwhile. */
  #goOn(incoming: GrpcUnaryCall | GrpcStreamCall | undefined, kind: number, frames: FrameReader): void {
    switch (kind) {
      case workerEvent.request: {
        const bytes = frames.bytes();
        if (incoming instanceof GrpcBidiCall) incoming.requests.take(bytes);
        else incoming?.arrived(Buffer.from(bytes));
        return;
      }
      case workerEvent.requestsEnd:
        if (incoming instanceof GrpcBidiCall) incoming.requests.end();
        return;
      case workerEvent.sent: {
        const bytes = frames.u32();
        if (incoming instanceof GrpcStreamCall) incoming.sent(bytes);
        return;
      }
      case workerEvent.cut: {
        const status = frames.u8();
        const error = cutOf(frames);
        if (incoming instanceof GrpcBidiCall) this.#parts.pipeline.running.endStream(incoming, error);
        else incoming?.cut(error, status);
        return;
      }
      case workerEvent.gone:
        if (incoming !== undefined) this.#gone(incoming);
    }
  }

  #gone(incoming: GrpcUnaryCall | GrpcStreamCall): void {
    this.#parts.pipeline.running.hangUp(incoming);
    incoming.gone();
  }
}

function grpcMethod({ method, rpcPath: path, changesState }: Endpoint, number: number): GrpcMethod {
  const { methodKind: kind } = method;
  if (kind === 'client_streaming') throw new TypeError(`${path}: no transport serves ${kind}`);
  return { number, path, kind, changesState };
}
