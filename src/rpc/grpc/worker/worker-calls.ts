import type { IncomingHttpHeaders } from 'node:http2';
import {
  Metadata,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';
import {
  type FrameReader,
  type FrameWriter,
  requestIdHeader,
  type WorkerCall,
  workerCommand,
  workerEvent,
} from '../frames.ts';
import type { CallStream } from './call-stream.ts';

export type UnaryCall = ServerUnaryCall<Buffer, Buffer>;
export type StreamCall = ServerWritableStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

/**
 * Returns the caller's address, then names and values of its headers. These are removed from the metadata: grpc-js
 * would keep them until the call ends, each as a string outside of the heap that only a full collection frees.
 */
export function headerListOf(call: UnaryCall | StreamCall): string[] {
  const list = [call.getPeer()];
  const { metadata } = call;
  for (const [name, values] of Object.entries(metadata.toJSON())) {
    if (typeof values[0] === 'string') list.push(name, values.length === 1 ? values[0] : values.join(', '));
    if (name !== requestIdHeader) metadata.remove(name);
  }
  return list;
}

/** Headers that grpc-js does not pass on, but for `grpc-encoding`, which says whether the request is compressed. */
const ownHeaders: ReadonlySet<string> = new Set([
  'grpc-timeout',
  'grpc-accept-encoding',
  'accept-encoding',
  'te',
  'content-type',
]);

/** The same for a call that has no handler yet. */
export function headerListOfStream(peer: string, headers: IncomingHttpHeaders): string[] {
  const list = [peer];
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string' || name.startsWith(':') || name.endsWith('-bin') || ownHeaders.has(name)) continue;
    list.push(name, value);
  }
  return list;
}

/** '' if the header is absent. */
export function headerOf(headers: Metadata | undefined, name: string): string {
  const value = headers?.get(name)[0];
  return typeof value === 'string' ? value : '';
}

export class WorkerUnaryCall implements WorkerCall {
  /** The main thread's number of the call. */
  number = 0;
  readonly #call: UnaryCall;
  readonly #callback: sendUnaryData<Buffer>;

  constructor(call: UnaryCall, callback: sendUnaryData<Buffer>) {
    this.#call = call;
    this.#callback = callback;
  }

  handle(kind: number, frame: FrameReader): boolean {
    if (kind === workerCommand.answer) {
      this.#call.sendMetadata(metadataOf(frame));
      this.#callback(null, frame.bytes());
    } else {
      this.#callback(errorOf(frame));
    }
    return true;
  }
}

/** A call with one request that the main thread knows before the request is complete. */
export class WorkerArrivingCall implements WorkerCall {
  number = 0;
  readonly #stream: CallStream;
  /** null until the request is complete. */
  #workerCall: WorkerCall | null = null;

  constructor(stream: CallStream) {
    this.#stream = stream;
  }

  get isArriving(): boolean {
    return this.#workerCall === null;
  }

  begin(workerCall: WorkerCall): void {
    this.#workerCall = workerCall;
  }

  handle(kind: number, frame: FrameReader): boolean {
    if (kind === workerCommand.admitted) {
      this.#stream.admitted();
      return false;
    }
    if (this.#workerCall !== null) return this.#workerCall.handle(kind, frame);
    this.#stream.call?.sendStatus(errorOf(frame));
    return true;
  }
}

/** A call with a stream of answers, and with a stream of requests if the method has one. */
export class WorkerStreamCall implements WorkerCall {
  readonly #stream: StreamCall;
  readonly #writer: FrameWriter;
  readonly #callStream: CallStream;
  number = 0;
  #isRead = false;
  #requestsEnded = false;
  #isOver = false;
  /** Taken and not reported to the main thread yet. */
  #sentBytes = 0;

  constructor(stream: StreamCall, callStream: CallStream, writer: FrameWriter) {
    this.#stream = stream;
    this.#callStream = callStream;
    this.#writer = writer;
    if ('read' in stream) stream.on('end', this.#onEnd).on('close', this.#onEnd);
  }

  handle(kind: number, frame: FrameReader): boolean {
    const stream = this.#stream;
    switch (kind) {
      case workerCommand.headers:
        stream.sendMetadata(metadataOf(frame));
        return false;
      case workerCommand.send: {
        const bytes = Buffer.from(frame.bytes());
        if (stream.destroyed) return false;
        stream.write(bytes, (error: Error | null | undefined) => {
          if (!error) this.#sent(bytes.length);
        });
        return false;
      }
      case workerCommand.grant:
        this.#grant(frame.u32(), frame.u32());
        return false;
      case workerCommand.drop:
        this.#drop();
        return false;
      case workerCommand.end:
        this.#isOver = true;
        stream.end();
        return true;
      default: {
        this.#isOver = true;
        const error = errorOf(frame);
        if (!stream.destroyed) stream.emit('error', error);
        return true;
      }
    }
  }

  get hasRequests(): boolean {
    return 'read' in this.#stream;
  }

  #sent(bytes: number): void {
    if (this.#isOver) return;
    if (this.#sentBytes === 0) setImmediate(() => this.#reportSent());
    this.#sentBytes += bytes;
  }

  #reportSent(): void {
    if (!this.#isOver) this.#writer.frame(workerEvent.sent, this.number).u32(this.#sentBytes);
    this.#sentBytes = 0;
  }

  #grant(count: number, takenBytes: number): void {
    const stream = this.#stream;
    if (!('read' in stream)) return;
    if (!this.#isRead) stream.on('data', this.#onRequest);
    this.#isRead = true;
    this.#callStream.gate.allow(count, takenBytes);
  }

  #onRequest = (bytes: Buffer): void => {
    this.#callStream.handedOn(bytes.length);
    if (this.#isOver) return;
    this.#callStream.gate.read(bytes.length);
    this.#writer.frame(workerEvent.request, this.number).bytes(bytes);
  };

  #onEnd = (): void => {
    if (!this.#isOver && !this.#requestsEnded) this.#writer.frame(workerEvent.requestsEnd, this.number);
    this.#requestsEnded = true;
  };

  #drop(): void {
    const stream = this.#stream;
    if (!('read' in stream)) return;
    this.#requestsEnded = true;
    stream.off('data', this.#onRequest).on('data', (bytes: Buffer) => this.#callStream.handedOn(bytes.length));
    this.#callStream.gate.open();
  }
}

function metadataOf(frame: FrameReader): Metadata {
  const metadata = new Metadata();
  const headers = frame.texts();
  for (let at = 0; at < headers.length; at += 2) metadata.set(headers[at] ?? '', headers[at + 1] ?? '');
  return metadata;
}

/** The error in the form that grpc-js sends, with ErrorInfo in the trailers. */
export function errorOf(frame: FrameReader) {
  const code = frame.u8();
  const metadata = metadataOf(frame);
  const details = frame.bytes().toString();
  metadata.set('grpc-status-details-bin', Buffer.from(frame.bytes()));
  return { name: 'ServiceError', message: details, code, details, metadata };
}
