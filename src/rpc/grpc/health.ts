import type { Server, ServerWritableStream, UntypedServiceImplementation } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';

type WatchCall = Pick<
  ServerWritableStream<{ readonly service: string }, { readonly status: string }>,
  'request' | 'on'
> & {
  write(answer: { readonly status: string }, taken: () => void): unknown;
};

/**
 * `grpc.health.v1` for the server as a whole (the empty name) and for each of its services. Watches are served here:
 * the library keeps the name of whatever is watched, also of a service that is not there, and writes to callers that
 * take nothing.
 */
export class Health {
  readonly #names: ReadonlySet<string>;
  readonly #implementation = new HealthImplementation();
  readonly #watches = new Set<HealthWatch>();
  #isServing = true;

  constructor(services: readonly string[]) {
    this.#names = new Set(['', ...services]);
    this.setServing(true);
  }

  setServing(serving: boolean): void {
    this.#isServing = serving;
    for (const name of this.#names) this.#implementation.setStatus(name, this.#status);
    for (const watch of this.#watches) watch.tell(this.#status);
  }

  get #status(): 'SERVING' | 'NOT_SERVING' {
    return this.#isServing ? 'SERVING' : 'NOT_SERVING';
  }

  addTo(server: Server): void {
    this.#implementation.addToServer({
      addService: (definition: Parameters<Server['addService']>[0], methods: UntypedServiceImplementation) =>
        server.addService(definition, { ...methods, watch: (call: WatchCall) => this.#watch(call) }),
    });
  }

  #watch(call: WatchCall): void {
    const watch = new HealthWatch(call);
    if (this.#names.has(call.request.service)) {
      this.#watches.add(watch);
      call.on('cancelled', () => this.#watches.delete(watch));
      watch.tell(this.#status);
    } else watch.tell('SERVICE_UNKNOWN');
  }
}

/** One caller of Watch. Of states that it did not take in time it gets the last. */
class HealthWatch {
  readonly #call: WatchCall;
  #isSending = false;
  #next: string | null = null;

  constructor(call: WatchCall) {
    this.#call = call;
  }

  tell(status: string): void {
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
