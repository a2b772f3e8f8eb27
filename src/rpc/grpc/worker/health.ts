import {
  type Server,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import type { service as healthService } from 'grpc-health-check';
import { asIs, callStreamOf, refuseUnloaded } from './call-streams.ts';

/** How to read and write the messages of each method. The library's type does not say which methods there are. */
type Methods = Record<'Check' | 'List' | 'Watch', (typeof healthService)[string]>;
type LoadMethods = () => Promise<Methods>;
type State = 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';
type HealthCall = ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>;
/** Sends a state to a caller of Watch. `taken` is called once the caller has taken it. */
type SendState = (state: State, taken: () => void) => void;
/** `service`: empty if the request has none. */
type Answer = (request: { readonly service: string }, encode: (answer: object) => Buffer) => void;

const path = '/grpc.health.v1.Health';

/**
 * Serves `grpc.health.v1` for the whole server (the empty name) and for each of its services. The library that knows
 * the messages is loaded with the first call, because it takes as long to load as all else in this thread. Its own
 * Watch is not used: it keeps every name that is watched, even of unknown services, and writes to callers that take
 * nothing.
 */
export class Health {
  readonly #names: ReadonlySet<string>;
  readonly #load: LoadMethods;
  readonly #watches = new Set<HealthWatch>();
  #isServing = true;
  #methods: Promise<Methods> | null = null;

  constructor(services: readonly string[], load: LoadMethods = loadMethods) {
    this.#names = new Set(['', ...services]);
    this.#load = load;
  }

  setServing(serving: boolean): void {
    this.#isServing = serving;
    for (const watch of this.#watches) watch.send(this.#state);
  }

  get #state(): State {
    return this.#isServing ? 'SERVING' : 'NOT_SERVING';
  }

  addTo(server: Pick<Server, 'register'>): void {
    const check = (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) =>
      void this.#serve(call, 'Check', ({ service }, encode) => {
        const details = `Health status unknown for service ${service}`;
        if (this.#names.has(service)) answer(null, encode({ status: this.#state }));
        else answer({ code: status.NOT_FOUND, details });
      });
    const list = (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) =>
      void this.#serve(call, 'List', (_, encode) => {
        const statuses = Object.fromEntries(Array.from(this.#names, (name) => [name, { status: this.#state }]));
        answer(null, encode({ statuses }));
      });
    const watch = (call: ServerWritableStream<Buffer, Buffer>) =>
      void this.#serve(call, 'Watch', ({ service }, encode) => {
        const end = this.#watch(service, (state, taken) => call.write(encode({ status: state }), taken));
        call.on('cancelled', end);
      });
    server.register(`${path}/Check`, check, asIs, asIs, 'unary');
    server.register(`${path}/List`, list, asIs, asIs, 'unary');
    server.register(`${path}/Watch`, watch, asIs, asIs, 'serverStream');
  }

  /** Loads the library, reads the request, and answers. If one of the first two fails, the call is refused. */
  async #serve(call: HealthCall, name: keyof Methods, answer: Answer): Promise<void> {
    let methods: Methods;
    try {
      this.#methods ??= this.#load();
      methods = await this.#methods;
    } catch {
      return refuseUnloaded(call);
    }
    if (call.cancelled) return;
    const { requestDeserialize, responseSerialize } = methods[name];
    let request: object;
    try {
      request = requestDeserialize(call.request);
    } catch {
      return callStreamOf(call).refuse(status.INVALID_ARGUMENT, 'invalid_argument', notReadable);
    }
    answer({ service: '', ...request }, responseSerialize);
  }

  /** Sends the state of a service now and whenever it changes, until the returned function is called. */
  #watch(service: string, send: SendState): () => void {
    const watch = new HealthWatch(send);
    const isKnown = this.#names.has(service);
    if (isKnown) this.#watches.add(watch);
    watch.send(isKnown ? this.#state : 'SERVICE_UNKNOWN');
    return () => this.#watches.delete(watch);
  }
}

/** The states of one call of Watch. If its caller did not take several of them in time, it gets only the last. */
class HealthWatch {
  readonly #sendState: SendState;
  #isSending = false;
  #next: State | null = null;

  constructor(send: SendState) {
    this.#sendState = send;
  }

  send(state: State): void {
    this.#next = state;
    if (!this.#isSending) this.#send(state);
  }

  #send(state: State): void {
    this.#isSending = true;
    this.#next = null;
    this.#sendState(state, () => {
      this.#isSending = false;
      if (this.#next !== null) this.#send(this.#next);
    });
  }
}

async function loadMethods(): Promise<Methods> {
  const { service } = await import('grpc-health-check');
  return service as Methods;
}

const notReadable = 'The request is not a serialized message of grpc.health.v1.';
