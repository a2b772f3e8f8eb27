import { status as grpcStatus, Server, type ServerInterceptingCallInterface } from '@grpc/grpc-js';
import type { Slab } from '../../../runtime/collections/slab.ts';
import type { Connections } from '../connections.ts';
import { type FrameWriter, requestIdHeader, type WorkerCall, workerEvent } from '../frames.ts';
import type { GrpcMethod } from '../worker-messages.ts';
import type { CallStream } from './call-stream.ts';
import { beginningInterceptor, callStreamOf, countingInterceptor, watchCallStreams } from './call-streams.ts';
import { isStandard, type RefusalParts, refusalInterceptor } from './refusals.ts';
import {
  headerOf,
  headOfStream,
  type StreamCall,
  WorkerArrivingCall,
  WorkerRefusedCall,
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
    const interceptors = [countingInterceptor, refusalInterceptor(refusalsFor(parts)), beginningInterceptor];
    super({ ...options, interceptors });
    const { calls, writer, connections, methods } = parts;
    super.register(unknownPath, unknownMethod(parts), asIs, asIs, 'bidi');
    watchCallStreams({
      connections,
      methods,
      isStandard: (path) => this.#paths.has(path),
      unknownPath,
      onOtherMedia(path, requestId) {
        writer
          .frame(workerEvent.noted, 0)
          .f64(0)
          .head([path ?? 'none', 'unsupported_media_type', requestId]);
      },
      admit: (stream) => reportArriving(parts, stream),
      closed({ own }) {
        if (own instanceof WorkerArrivingCall && calls.get(own.number) === own)
          writer.frame(workerEvent.gone, own.number);
      },
    });
  }

  override register<Request, Answer>(path: string, ...rest: Rest<Request, Answer>): boolean {
    this.#paths.add(path);
    return super.register<Request, Answer>(path, ...rest);
  }
}

type Rest<Request, Answer> =
  Parameters<typeof Server.prototype.register<Request, Answer>> extends [string, ...infer R] ? R : never;

function asIs(bytes: Buffer): Buffer {
  return bytes;
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
    .head(headOfStream(call.getPeer(), headers));
  stream.begun(arriving);
}

function unknownMethod({ calls, writer }: AnsweringServerParts) {
  return (call: StreamCall): void => {
    const own = new WorkerStreamCall(call, callStreamOf(call), writer);
    own.number = calls.add(own);
    const head = ['none', 'route_not_found', 'There is no such method here.', headerOf(call.metadata, requestIdHeader)];
    writer.frame(workerEvent.refused, own.number).u8(grpcStatus.UNIMPLEMENTED).f64(0).head(head);
  };
}

/** Reports calls that are refused in the worker to the main thread, which answers them with ErrorInfo and logs them. */
function refusalsFor({ calls, writer }: AnsweringServerParts): RefusalParts {
  const sentId = (call: ServerInterceptingCallInterface): string =>
    String(callStreamOf(call).headers?.[requestIdHeader] ?? '');
  return {
    refuse(call, { status, code, message, bound, route, ms }, send) {
      const stream = callStreamOf(call);
      const { own } = stream;
      const isGone = stream.stream.closed;
      stream.refused();
      // The client has reset the stream, so no status is sent and nothing is logged.
      if (isGone && own === null) return;
      if (own !== null && isReading(own) && calls.get(own.number) === own) {
        // The main thread has the call: requests that arrived before are answered first.
        writer.frame(workerEvent.cut, own.number).u8(status).head([code, message, bound]);
        return;
      }
      const number = calls.add(new WorkerRefusedCall(send));
      writer
        .frame(workerEvent.refused, number)
        .u8(status)
        .f64(ms)
        .head([route, code, message, sentId(call), bound]);
    },
    note(call, route, code, ms) {
      if (code === null) writer.frame(workerEvent.noted, 0).f64(ms).head([route, '', '']);
      else if (callStreamOf(call).own === null)
        writer
          .frame(workerEvent.noted, 0)
          .f64(ms)
          .head([route, code, isStandard(route) ? '' : sentId(call)]);
    },
  };
}

/** Whether the main thread waits for more of the call's requests. */
function isReading(own: WorkerCall): own is WorkerArrivingCall | WorkerStreamCall {
  return own instanceof WorkerArrivingCall ? own.isArriving : own instanceof WorkerStreamCall && own.hasRequests;
}
