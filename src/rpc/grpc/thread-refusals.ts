import { status as grpcStatus, Server, type ServerInterceptingCallInterface } from '@grpc/grpc-js';
import type { Slots } from '../../domain/slots.ts';
import { type Outbox, told } from './frames.ts';
import { headersOf, isStandard, leadUnknownMethods, type RefusalParts, refusalInterceptor } from './refusals.ts';
import {
  callOf,
  headerOf,
  requestIdHeader,
  type StreamCall,
  type ThreadCall,
  ThreadRefusedCall,
  ThreadStreamCall,
} from './thread-calls.ts';

/** Where calls for no method are led: the path of no method, since it has no service. */
const unknownPath = '/unknown';

/** A server of grpc-js that answers calls for no method like other refusals. One a thread. */
export class AnsweringServer extends Server {
  readonly #paths = new Set<string>();

  constructor(calls: Slots<ThreadCall>, outbox: Outbox, options: ConstructorParameters<typeof Server>[0]) {
    super({ ...options, interceptors: [refusalInterceptor(refusalsFor(calls, outbox))] });
    super.register(unknownPath, unknownMethod(calls, outbox), asIs, asIs, 'bidi');
    leadUnknownMethods(this.#paths, unknownPath, (path, requestId) => {
      outbox
        .frame(told.noted, 0)
        .f64(0)
        .head([path ?? 'none', 'unsupported_media_type', requestId]);
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

function unknownMethod(calls: Slots<ThreadCall>, outbox: Outbox) {
  return (call: StreamCall): void => {
    const own = new ThreadStreamCall(call, outbox);
    own.number = calls.add(own);
    const head = ['none', 'route_not_found', 'There is no such method here.', headerOf(call.metadata, requestIdHeader)];
    outbox.frame(told.refused, own.number).u8(grpcStatus.UNIMPLEMENTED).f64(0).head(head);
  };
}

/** Tells the main thread, which answers with ErrorInfo and logs, of what grpc-js refuses. */
function refusalsFor(calls: Slots<ThreadCall>, outbox: Outbox): RefusalParts {
  const sentId = (call: ServerInterceptingCallInterface): string => headerOf(headersOf(call), requestIdHeader);
  return {
    refuse(call, { status, code, message, route, ms }, send) {
      const own = callOf(call);
      if (own instanceof ThreadStreamCall && own.hasRequests && calls.get(own.number) === own) {
        // What came before is answered first, and by the main thread, which has it.
        outbox.frame(told.cut, own.number).head([code, message]);
        return;
      }
      const number = calls.add(new ThreadRefusedCall(send));
      outbox
        .frame(told.refused, number)
        .u8(status)
        .f64(ms)
        .head([route, code, message, sentId(call)]);
    },
    note(call, route, code, ms) {
      if (code === null) outbox.frame(told.noted, 0).f64(ms).head([route, '', '']);
      else if (callOf(call) === undefined)
        outbox
          .frame(told.noted, 0)
          .f64(ms)
          .head([route, code, isStandard(route) ? '' : sentId(call)]);
    },
  };
}
