import {
  type Server,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import type { service as healthService } from 'grpc-health-check';
import { callStreamOf } from './call-streams.ts';

/** The library's type names no methods. */
type Methods = Record<'Check' | 'List' | 'Watch', (typeof healthService)[string]>;
type State = 'SERVING' | 'NOT_SERVING' | 'SERVICE_UNKNOWN';
type CheckCall = ServerUnaryCall<Buffer, Buffer>;
type WatchCall = ServerWritableStream<Buffer, Buffer>;

/** A caller of Watch. */
interface Watcher {
  send(state: State, taken: () => void): void;
}

const path = '/grpc.health.v1.Health';

/**
 * Serves `grpc.health.v1` for the whole server (the empty name) and for each of its services. What encodes its messages
 * is loaded with the first call: it takes longer to load than all else in this thread. Watch is not the library's,
 * which keeps every name that is watched, even of unknown services, and writes to callers that take nothing.
 */
export class Health {
  readonly #names: ReadonlySet<string>;
  readonly #watches = new Set<HealthWatch>();
  #isServing = true;
  #methods: Promise<Methods> | null = null;

  constructor(services: readonly string[]) {
    this.#names = new Set(['', ...services]);
  }

  setServing(serving: boolean): void {
    this.#isServing = serving;
    for (const watch of this.#watches) watch.send(this.#state);
  }

  get #state(): State {
    return this.#isServing ? 'SERVING' : 'NOT_SERVING';
  }

  addTo(server: Server): void {
    const check = (call: CheckCall, answer: sendUnaryData<Buffer>) => void this.#check(call, answer);
    const list = (call: CheckCall, answer: sendUnaryData<Buffer>) => void this.#list(call, answer);
    server.register(`${path}/Check`, check, asIs, asIs, 'unary');
    server.register(`${path}/List`, list, asIs, asIs, 'unary');
    server.register(`${path}/Watch`, (call: WatchCall) => void this.#watch(call), asIs, asIs, 'serverStream');
  }

  async #check(call: CheckCall, answer: sendUnaryData<Buffer>): Promise<void> {
    const methods = await this.#loaded();
    const name = nameIn(call, methods);
    if (name === null) return;
    const details = `Health status unknown for service ${name}`;
    if (this.#names.has(name)) answer(null, methods.Check.responseSerialize({ status: this.#state }));
    else answer({ code: status.NOT_FOUND, details });
  }

  async #list(_call: CheckCall, answer: sendUnaryData<Buffer>): Promise<void> {
    const { List } = await this.#loaded();
    const statuses = Object.fromEntries(Array.from(this.#names, (name) => [name, { status: this.#state }]));
    answer(null, List.responseSerialize({ statuses }));
  }

  async #watch(call: WatchCall): Promise<void> {
    const methods = await this.#loaded();
    const name = nameIn(call, methods);
    if (name === null || call.cancelled) return;
    const { responseSerialize } = methods.Watch;
    const end = this.watch(name, { send: (state, taken) => call.write(responseSerialize({ status: state }), taken) });
    call.on('cancelled', end);
  }

  /** Sends the state of a service now and whenever it changes, until the returned function is called. */
  watch(name: string, watcher: Watcher): () => void {
    const watch = new HealthWatch(watcher);
    const isKnown = this.#names.has(name);
    if (isKnown) this.#watches.add(watch);
    watch.send(isKnown ? this.#state : 'SERVICE_UNKNOWN');
    return () => this.#watches.delete(watch);
  }

  #loaded(): Promise<Methods> {
    this.#methods ??= import('grpc-health-check').then(({ service }) => service as Methods);
    return this.#methods;
  }
}

/** One caller of Watch. If it did not take several states in time, it gets only the last of them. */
class HealthWatch {
  readonly #watcher: Watcher;
  #isSending = false;
  #next: State | null = null;

  constructor(watcher: Watcher) {
    this.#watcher = watcher;
  }

  send(state: State): void {
    this.#next = state;
    if (!this.#isSending) this.#send(state);
  }

  #send(state: State): void {
    this.#isSending = true;
    this.#next = null;
    this.#watcher.send(state, () => {
      this.#isSending = false;
      if (this.#next !== null) this.#send(this.#next);
    });
  }
}

/** The service that a call asks for. null: its bytes are no request, and the call is refused. */
function nameIn(call: CheckCall | WatchCall, { Check }: Methods): string | null {
  try {
    return (Check.requestDeserialize(call.request) as { readonly service: string }).service;
  } catch {
    callStreamOf(call).refuse(status.INVALID_ARGUMENT, 'invalid_argument', noRequest);
    return null;
  }
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

const noRequest = 'The request is no serialized grpc.health.v1.HealthCheckRequest.';
