import { status as grpcStatus, Server, type ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js';
import type { ErrorCode } from '../../../domain/errors.ts';
import type { Slab } from '../../../runtime/collections/slab.ts';
import type { Connections } from '../connections.ts';
import { type FrameWriter, requestIdHeader, type WorkerCall, workerEvent } from '../frames.ts';
import { guardStreams } from '../guarded-streams.ts';
import type { GrpcMethod } from '../worker-messages.ts';
import type { CallStream, RefusedStatus, Status } from './call-stream.ts';
import { asIs, beginningInterceptor, callStreamOf, countingInterceptor, watchCallStreams } from './call-streams.ts';
import {
  errorOf,
  headerListOfStream,
  headerOf,
  type StreamCall,
  WorkerArrivingCall,
  WorkerStreamCall,
} from './worker-calls.ts';

/** The path that unknown methods are redirected to. It has no service part, so no method can have it. */
const unknownPath = '/unknown';

interface AnsweringServerParts {
  readonly calls: Slab<WorkerCall>;
  readonly writer: FrameWriter;
  readonly connections: Connections;
  /** The methods that the main thread serves, by path. */
  readonly methods: ReadonlyMap<string, GrpcMethod>;
}

/** A server of grpc-js that bounds what calls hold, and answers refused calls like the service does. One per thread. */
export class AnsweringServer extends Server {
  readonly #paths = new Set<string>();

  constructor(parts: AnsweringServerParts, options: ConstructorParameters<typeof Server>[0]) {
    super({ ...options, interceptors: [countingInterceptor, refusalInterceptor(parts), beginningInterceptor] });
    const { calls, writer, connections, methods } = parts;
    guardStreams(this);
    super.register(unknownPath, unknownMethod(parts), asIs, asIs, 'bidi');
    watchCallStreams({
      connections,
      methods,
      isStandard: (path) => this.#paths.has(path),
      unknownPath,
      onOtherMedia: (path, requestId) => note(writer, 0, path ?? 'none', 'unsupported_media_type', requestId),
      admit: (stream) => reportArriving(parts, stream),
      closed({ workerCall }) {
        if (workerCall instanceof WorkerArrivingCall && calls.get(workerCall.number) === workerCall)
          writer.frame(workerEvent.gone, workerCall.number);
      },
    });
  }

  override register<Q, A>(...handler: Parameters<typeof Server.prototype.register<Q, A>>): boolean {
    this.#paths.add(handler[0]);
    return super.register<Q, A>(...handler);
  }
}

function reportArriving({ calls, writer }: AnsweringServerParts, stream: CallStream): void {
  const { call, method, headers } = stream;
  if (call === null || method === null || headers === null) return;
  const arriving = new WorkerArrivingCall(stream);
  arriving.number = calls.add(arriving);
  writer
    .frame(workerEvent.arriving, arriving.number)
    .u32(method.number)
    .f64(Number(call.getDeadline()))
    .texts(headerListOfStream(call.getPeer(), headers));
  stream.begun(arriving);
}

function unknownMethod({ calls, writer }: AnsweringServerParts) {
  return (call: StreamCall): void => {
    const workerCall = new WorkerStreamCall(call, callStreamOf(call), writer);
    workerCall.number = calls.add(workerCall);
    const requestId = headerOf(call.metadata, requestIdHeader);
    const texts = ['none', 'route_not_found', 'There is no such method here.', requestId];
    writer.frame(workerEvent.refused, workerCall.number).u8(grpcStatus.UNIMPLEMENTED).f64(0).texts(texts);
  };
}

/** Whether grpc-js or one of its packages serves the method: health and reflection. */
function isStandard(path: string): boolean {
  return path.startsWith('/grpc.');
}

/** The text with which grpc-js ends a call whose caller takes no more bytes. Nothing of it is sent. */
const callerGone = 'Internal server error';

/**
 * Reports to the main thread every status that is not the service's own: of a call that grpc-js refuses before a
 * handler has it, or takes away from its handler. The main thread answers it with ErrorInfo and logs it. grpc-js has no
 * hook for that, so the method is replaced by which it sends the status. Requests for which grpc-js makes no call are
 * redirected in call-streams.ts.
 */
function refusalInterceptor(parts: AnsweringServerParts): ServerInterceptor {
  return ({ path }, call) => {
    const startedMs = performance.now();
    const { sendStatus } = call;
    let isAnswered = false;
    call.sendStatus = (status) => {
      if (status.details === callerGone && !hasDetails(status)) return sendStatus.call(call, status);
      const isOk = status.code === grpcStatus.OK;
      const isFirst = !isAnswered;
      isAnswered = true;
      if (isOk ? !isStandard(path) : hasDetails(status)) return sendStatus.call(call, status);
      const ms = performance.now() - startedMs;
      if (isOk || status.code === grpcStatus.DEADLINE_EXCEEDED) {
        const stream = callStreamOf(call);
        const requestId = isStandard(path) ? '' : sentIdOf(stream);
        if (isFirst && isOk) note(parts.writer, ms, path, '', '');
        // Nothing was written, but the caller sees the status of `outcome_unknown`.
        else if (isFirst && stream.workerCall === null) note(parts.writer, ms, path, 'outcome_unknown', requestId);
        return sendStatus.call(call, status);
      }
      // grpc-js refuses again for each further chunk of bytes. Only the first refusal counts.
      if (isFirst) refuse(parts, callStreamOf(call), status, path, ms, (answer) => sendStatus.call(call, answer));
    };
    // Only `sendStatus` changes, so the call itself is returned: a wrapper would cost something for each message.
    return call as ServerInterceptingCall;
  };
}

function hasDetails({ metadata }: Status): boolean {
  return (metadata?.get('grpc-status-details-bin').length ?? 0) > 0;
}

function sentIdOf({ headers }: CallStream): string {
  return String(headers?.[requestIdHeader] ?? '');
}

function note(writer: FrameWriter, ms: number, route: string, code: ErrorCode | '', requestId: string): void {
  writer.frame(workerEvent.noted, 0).f64(ms).texts([route, code, requestId]);
}

/** `send` sends the status that the main thread makes. */
function refuse(
  { calls, writer }: AnsweringServerParts,
  stream: CallStream,
  status: Status,
  route: string,
  ms: number,
  send: (status: Status) => void,
): void {
  const { workerCall } = stream;
  const isGone = stream.stream.closed;
  const [code, message, bound] = saidOf(status);
  stream.refused();
  // The client has reset the stream, so no status is sent and nothing is logged.
  if (isGone && workerCall === null) return;
  if (workerCall !== null && isReading(workerCall) && calls.get(workerCall.number) === workerCall) {
    // The main thread has the call: requests that arrived before are answered first.
    writer.frame(workerEvent.cut, workerCall.number).u8(status.code).texts([code, message, bound]);
    return;
  }
  const number = calls.add({
    handle(_kind, frame) {
      send(errorOf(frame));
      return true;
    },
  });
  const texts = [route, code, message, sentIdOf(stream), bound];
  writer.frame(workerEvent.refused, number).u8(status.code).f64(ms).texts(texts);
}

/** Whether the main thread waits for more of the call's requests. */
function isReading(call: WorkerCall): call is WorkerArrivingCall | WorkerStreamCall {
  return call instanceof WorkerArrivingCall ? call.isArriving : call instanceof WorkerStreamCall && call.hasRequests;
}

const timeoutForm = 'The header grpc-timeout must be 1 to 8 digits and a unit, which is one of H, M, S, m, u and n.';

/**
 * grpc-js reports what was wrong only as a sentence, which may repeat text that the caller sent. The third member is
 * the message in its place; '' if the main thread has one for the code.
 */
const sentences: readonly [RegExp, ErrorCode, string?][] = [
  [/^Received message (larger than|that decompresses to)/, 'payload_too_large', ''],
  [
    /^Received message compressed with unsupported encoding/,
    'unsupported_media_type',
    'The header grpc-encoding must be gzip, deflate or identity.',
  ],
  [/^Invalid grpc-timeout/, 'invalid_argument', timeoutForm],
  [/^(Failed to decompress|Received (a second|no) request message)/, 'invalid_argument'],
];
const shownMaxChars = 256;

function saidOf(status: Status | RefusedStatus): [code: ErrorCode, message: string, bound: string] {
  const { code, details } = status;
  if ('reason' in status) return [status.reason, details, status.bound];
  const known = sentences.find(([sentence]) => sentence.test(details));
  if (known !== undefined) return [known[1], known[2] ?? details, ''];
  return [code === grpcStatus.NOT_FOUND ? 'not_found' : 'internal', details.slice(0, shownMaxChars), ''];
}
