import { createRequire } from 'node:module';
import type {
  handleUnaryCall,
  MethodDefinition,
  Server,
  ServerWritableStream,
  UntypedServiceImplementation,
} from '@grpc/grpc-js';

type WatchCall = Pick<
  ServerWritableStream<{ readonly service: string }, { readonly status: string }>,
  'request' | 'on'
> & {
  write(answer: { readonly status: string }, taken: () => void): unknown;
};

type Library = typeof import('grpc-health-check');
type Method = 'Check' | 'List' | 'Watch';

/**
 * Serves `grpc.health.v1` for the whole server (the empty name) and for each of its services. The library is loaded
 * with the first call: it and what reads its .proto are a third of the modules of this thread. The library's Watch
 * keeps every name that is watched, even of unknown services, and writes to callers that take nothing.
 */
export class Health {
  readonly #names: ReadonlySet<string>;
  readonly #watches = new Set<HealthWatch>();
  #library: Library | null = null;
  #isServing = true;

  constructor(services: readonly string[]) {
    this.#names = new Set(['', ...services]);
  }

  setServing(serving: boolean): void {
    this.#isServing = serving;
    for (const watch of this.#watches) watch.send(this.#status);
  }

  get #status(): 'SERVING' | 'NOT_SERVING' {
    return this.#isServing ? 'SERVING' : 'NOT_SERVING';
  }

  addTo(server: Pick<Server, 'addService'>): void {
    server.addService(
      { check: this.#definition('Check'), list: this.#definition('List'), watch: this.#definition('Watch') },
      {
        check: this.#handler('check'),
        list: this.#handler('list'),
        watch: (call: WatchCall) => this.#watch(call),
      },
    );
  }

  #load(): Library {
    this.#library ??= createRequire(import.meta.url)('grpc-health-check') as Library;
    return this.#library;
  }

  #definition(name: Method): MethodDefinition<object, object> {
    const known = () => this.#load().service[name] as MethodDefinition<object, object>;
    return {
      path: `/grpc.health.v1.Health/${name}`,
      requestStream: false,
      responseStream: name === 'Watch',
      requestSerialize: (request) => known().requestSerialize(request),
      requestDeserialize: (bytes) => known().requestDeserialize(bytes),
      responseSerialize: (answer) => known().responseSerialize(answer),
      responseDeserialize: (bytes) => known().responseDeserialize(bytes),
    };
  }

  /** A method of the library, which answers with the present states. */
  #handler(name: 'check' | 'list'): handleUnaryCall<object, object> {
    return (call, callback) => {
      const { HealthImplementation } = this.#load();
      const states = Object.fromEntries([...this.#names].map((service) => [service, this.#status]));
      new HealthImplementation(states).addToServer({
        addService: (_: unknown, methods: UntypedServiceImplementation) =>
          (methods[name] as handleUnaryCall<object, object>)(call, callback),
      });
    };
  }

  #watch(call: WatchCall): void {
    const watch = new HealthWatch(call);
    if (this.#names.has(call.request.service)) {
      this.#watches.add(watch);
      call.on('cancelled', () => this.#watches.delete(watch));
      watch.send(this.#status);
    } else watch.send('SERVICE_UNKNOWN');
  }
}

/** One caller of Watch. If it did not take several states in time, it gets only the last of them. */
class HealthWatch {
  readonly #call: WatchCall;
  #isSending = false;
  #next: string | null = null;

  constructor(call: WatchCall) {
    this.#call = call;
  }

  send(status: string): void {
    this.#next = status;
    if (!this.#isSending) this.#send(status);
  }

  #send(status: string): void {
    this.#isSending = true;
    this.#next = null;
    this.#call.write({ status }, () => {
      this.#isSending = false;
      if (this.#next !== null) this.#send(this.#next);
    });
  }
}
