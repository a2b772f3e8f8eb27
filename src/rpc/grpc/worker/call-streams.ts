import { subscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders } from 'node:http2';
import {
  Metadata,
  type ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from '@grpc/grpc-js';
import { Slab } from '../../../runtime/collections/slab.ts';
import { limits } from '../../../runtime/limits/limits.ts';
import { boundGrpcTimeout } from '../../call/timeouts.ts';
import type { Connections } from '../connections.ts';
import type { GrpcMethod } from '../worker-messages.ts';
import { CallStream, callStreamKey, isGrpc, type WatchedStream } from './call-stream.ts';
import { frameHeadBytes } from './framing.ts';

interface CallStreamsParts {
  readonly connections: Connections;
  /** The methods that the main thread serves, by path. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  isStandard(path: string): boolean;
  /** Unknown methods are redirected to it, because grpc-js makes no call for them. */
  readonly unknownPath: string;
  /** grpc-js answers another media type with a bare 415. `path` is null for an unknown method. */
  onOtherMedia(path: string | null, requestId: string): void;
  /** Asks the main thread whether it admits the caller of an unfinished request. */
  admit(stream: CallStream): void;
  closed(stream: CallStream): void;
}

/** Publishes a stream before the server's handler gets it, with the same headers object. */
const streamCreated = 'http2.server.stream.created';

/** Keeps a CallStream for each HTTP/2 stream, and sweeps over all of them. Call it once per thread. */
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
    // grpc-js accepts any text that contains a timeout, and takes a longer one than fits a timer for one in the past.
    if (headers['grpc-timeout'] !== undefined)
      headers['grpc-timeout'] = boundGrpcTimeout(String(headers['grpc-timeout'])) ?? 'malformed';
    const callStream = new CallStream(callStreamParts, stream, headers, method);
    callStream.slot = streams.add(callStream);
  });
  const sweep = (): void => {
    connections.nowMs = performance.now();
    for (const stream of streams) stream.look(connections.nowMs);
    connections.updateBudget();
  };
  setInterval(sweep, limits.grpcSweepMs).unref();
}

const linked = Symbol('call stream of a call');
type Linked = { [linked]?: CallStream };

/**
 * The metrics recorder is the only object that a handler's call and an interceptor's call share, so it has the link.
 */
export function callStreamOf(call: Pick<ServerInterceptingCallInterface, 'getMetricsRecorder'>): CallStream {
  const found = (call.getMetricsRecorder() as Linked)[linked];
  if (found === undefined) throw new Error('a call of grpc-js without a stream');
  return found;
}

/**
 * Serializes and deserializes: messages stay bytes on this thread. The main thread decodes those of calls once it knows
 * the caller.
 */
export function asIs(bytes: Buffer): Buffer {
  return bytes;
}

/** For a method of gRPC's own whose modules cannot be loaded. An import that has failed fails until the process ends. */
export function refuseUnloaded(call: Pick<ServerInterceptingCallInterface, 'getMetricsRecorder'>): void {
  const message = 'This node could not load what answers the method: restart the node.';
  callStreamOf(call).refuse(status.UNAVAILABLE, 'unavailable', message);
}

/** Members that grpc-js 1.14 declares private. */
interface BaseCall {
  readonly stream: WatchedStream;
  handleDataFrame(chunk: Buffer): void;
  decompressMessage(message: Buffer, encoding: string): Buffer | Promise<Buffer>;
}

/** Must be the first interceptor, next to the call itself. */
export const countingInterceptor: ServerInterceptor = ({ requestStream }, call) => {
  const base = call as unknown as BaseCall;
  const callStream = base.stream[callStreamKey];
  if (callStream === undefined) throw new Error('no CallStream for this HTTP/2 stream');
  (call.getMetricsRecorder() as Linked)[linked] = callStream;
  const { startRead } = call;
  const { handleDataFrame } = base;
  base.handleDataFrame = (chunk) => {
    callStream.arrived(chunk);
    handleDataFrame.call(base, chunk);
  };
  base.decompressMessage = (message, encoding) => {
    const contents = message.subarray(frameHeadBytes);
    return encoding === 'identity' ? contents : callStream.unpack(contents, encoding);
  };
  if (requestStream) {
    callStream.gate.reader = () => startRead.call(call);
    call.startRead = () => callStream.gate.want();
  }
  countStatus(call, callStream);
  countMessages(call, callStream);
  // Only these members change, so the call itself is returned: a wrapper would cost something for each message.
  return call as ServerInterceptingCall;
};

/** Must be the last interceptor, so that its refusals pass through all others. */
export const beginningInterceptor: ServerInterceptor = (_, call) => {
  callStreamOf(call).begin(call);
  return call as ServerInterceptingCall;
};

function countStatus(call: ServerInterceptingCallInterface, callStream: CallStream): void {
  const { sendStatus } = call;
  call.sendStatus = (status) => {
    const isTrailersOnly = !callStream.stream.headersSent;
    callStream.answered();
    sendStatus.call(call, status);
    // The rest of the request is of no use, and grpc-js would keep what arrived of it until the stream closes.
    if (isTrailersOnly && !callStream.isReceived) callStream.stream.close();
  };
}

function countMessages(call: ServerInterceptingCallInterface, callStream: CallStream): void {
  const { sendMessage } = call;
  call.sendMessage = (message: Uint8Array, done) => {
    if (callStream.isAnswered) return;
    const bytes = message.length + frameHeadBytes;
    if (!callStream.answers(bytes)) return;
    if (bytes > limits.grpcAnswerPieceBytes && bytes <= limits.grpcSendMaxBytes) {
      call.sendMetadata(new Metadata());
      writeInPieces(callStream, message, done);
    } else {
      sendMessage.call(call, message, () => {
        callStream.taken(bytes);
        done();
      });
    }
  };
}

/** grpc-js would write the message at once, and Node reports nothing until all of it is taken. */
function writeInPieces(callStream: CallStream, message: Uint8Array, done: () => void): void {
  const { stream } = callStream;
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
      callStream.taken(piece.length);
      if (at === framed.length) done();
      else next();
    });
  };
  next();
}
