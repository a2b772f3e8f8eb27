import { subscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http2';
import {
  Metadata,
  type ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
} from '@grpc/grpc-js';
import { Slab } from '../../domain/slab.ts';
import { limits } from '../../limits.ts';
import { CallStream, callStreamKey, isGrpc, type WatchedStream } from './call-stream.ts';
import type { Connections } from './connections.ts';
import { frameHeadBytes } from './framing.ts';
import type { GrpcMethod } from './thread-messages.ts';

export interface CallStreamsParts {
  readonly connections: Connections;
  /** By path: the methods that the main thread serves. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  /** Paths of those that the thread serves itself. */
  isStandard(path: string): boolean;
  /** Where calls for no method are led, since grpc-js makes no call of them. */
  readonly unknownPath: string;
  /**
   * Called for what is not gRPC by its media type, which grpc-js answers with a bare 415, as the protocol has it.
   * `path`: null for no method.
   */
  onOtherMedia(path: string | null, requestId: string): void;
  /** Asks the main thread whether the caller of an unfinished request is let in. */
  admit(stream: CallStream): void;
  closed(stream: CallStream): void;
}

/**
 * Node's own channel. It tells of a stream before its server does, with the headers object that the server is given.
 */
const streamCreated = 'http2.server.stream.created';

/** Keeps a CallStream for each HTTP/2 stream of this thread, and sweeps over all of them. Once a thread. */
export function watchCallStreams(parts: CallStreamsParts): void {
  const streams = new Slab<CallStream>();
  const { connections, methods, unknownPath } = parts;
  const callStreamParts = {
    connections,
    admit: (stream: CallStream) => parts.admit(stream),
    closed: (stream: CallStream) => {
      streams.remove(stream.slot);
      parts.closed(stream);
    },
  };
  subscribe(streamCreated, (message) => {
    const { stream, headers } = message as { readonly stream: WatchedStream; readonly headers: IncomingHttpHeaders };
    const path = headers[':path'] ?? '';
    const method = methods.get(path) ?? null;
    const isKnown = method !== null || parts.isStandard(path);
    if (!isGrpc(headers)) parts.onOtherMedia(isKnown ? path : null, String(headers['x-request-id'] ?? ''));
    else if (!isKnown) headers[':path'] = unknownPath;
    if (headers['grpc-timeout'] !== undefined)
      headers['grpc-timeout'] = readableTimeout(String(headers['grpc-timeout']));
    const own = new CallStream(callStreamParts, stream, headers, method);
    own.slot = streams.add(own);
  });
  const sweep = (): void => {
    connections.nowMs = performance.now();
    for (const stream of streams) stream.look(connections.nowMs);
    connections.tell();
  };
  setInterval(sweep, limits.grpcSweepMs).unref();
}

/**
 * grpc-js takes texts that only contain a timeout, and counts milliseconds with 32 bits: long timeouts would be past.
 */
export function readableTimeout(timeout: string): string {
  const found = /^(\d{1,8})([HMSmun])$/.exec(timeout);
  if (found === null) return 'malformed';
  const [, digits = '', unit = ''] = found;
  const maxOfUnit = { H: 596, M: 35_791, S: 2_147_483 }[unit];
  return maxOfUnit === undefined ? timeout : `${Math.min(Number(digits), maxOfUnit)}${unit}`;
}

const linked = Symbol('call stream of a call');
type Linked = { [linked]?: CallStream };

/** The call object of a handler and that of interceptors have only the metrics recorder in common. */
export function callStreamOf(call: Pick<ServerInterceptingCallInterface, 'getMetricsRecorder'>): CallStream {
  const found = (call.getMetricsRecorder() as Linked)[linked];
  if (found === undefined) throw new Error('a call of grpc-js without a stream');
  return found;
}

/** What grpc-js 1.14 declares private. */
interface BaseCall {
  readonly stream: WatchedStream;
  handleDataFrame(chunk: Buffer): void;
  decompressMessage(message: Buffer, encoding: string): Buffer | Promise<Buffer>;
}

/** Counts what calls hold, and lets them read and unpack as CallStream says. Comes first, next to the call itself. */
export const countingInterceptor: ServerInterceptor = ({ requestStream }, call) => {
  const base = call as unknown as BaseCall;
  const own = base.stream[callStreamKey];
  if (own === undefined) throw new Error('grpc-js tells of a stream that Node did not');
  (call.getMetricsRecorder() as Linked)[linked] = own;
  const { startRead } = call;
  const { handleDataFrame } = base;
  base.handleDataFrame = (chunk) => {
    own.arrived(chunk);
    handleDataFrame.call(base, chunk);
  };
  base.decompressMessage = (message, encoding) => {
    const contents = message.subarray(frameHeadBytes);
    return encoding === 'identity' ? contents : own.unpack(contents, encoding);
  };
  if (requestStream) {
    own.gate.reader = () => startRead.call(call);
    call.startRead = () => own.gate.want();
  }
  countStatus(call, own);
  countMessages(call, own);
  // Nothing else of it is changed, so it can stand for itself: a wrapper would cost something for each message.
  return call as ServerInterceptingCall;
};

/** Comes last: what is refused here goes through all others. */
export const beginningInterceptor: ServerInterceptor = (_, call) => {
  callStreamOf(call).begin(call);
  return call as ServerInterceptingCall;
};

function countStatus(call: ServerInterceptingCallInterface, own: CallStream): void {
  const { sendStatus } = call;
  call.sendStatus = (status) => {
    const isTrailersOnly = !own.stream.headersSent;
    own.answered();
    sendStatus.call(call, status);
    // The rest of the request is of no use, and grpc-js keeps what came of it until the stream closes.
    if (isTrailersOnly && !own.isReceived) own.stream.close();
  };
}

/** Of messages that are no bytes yet: those of health. */
const smallMessageBytes = 64;

function countMessages(call: ServerInterceptingCallInterface, own: CallStream): void {
  const { sendMessage } = call;
  call.sendMessage = (message: Uint8Array | object, done) => {
    if (own.isAnswered) return;
    const bytes = (message instanceof Uint8Array ? message.length : smallMessageBytes) + frameHeadBytes;
    if (!own.answers(bytes)) return;
    if (message instanceof Uint8Array && bytes > limits.grpcAnswerPieceBytes && bytes <= limits.grpcSendMaxBytes) {
      call.sendMetadata(new Metadata());
      writeInPieces(own, message, done);
    } else {
      sendMessage.call(call, message, () => {
        own.taken(bytes);
        done();
      });
    }
  };
}

/** grpc-js writes a message at once, and Node says nothing of it until all was taken. */
function writeInPieces(own: CallStream, message: Uint8Array, done: () => void): void {
  const { stream } = own;
  const framed = Buffer.allocUnsafeSlow(message.length + frameHeadBytes);
  framed.writeUInt8(0, 0);
  framed.writeUInt32BE(message.length, 1);
  framed.set(message, frameHeadBytes);
  let at = 0;
  const next = (): void => {
    if (stream.destroyed || stream.writableEnded) return;
    const piece = framed.subarray(at, at + limits.grpcAnswerPieceBytes);
    at += piece.length;
    stream.write(piece, (error) => {
      if (error) return;
      own.taken(piece.length);
      if (at === framed.length) done();
      else next();
    });
  };
  next();
}
