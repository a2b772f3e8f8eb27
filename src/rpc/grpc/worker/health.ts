import type { Server, ServerWritableStream, UntypedServiceImplementation } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';

type WatchCall = Pick<
  ServerWritableStream<{ readonly service: string }, { readonly status: string }>,
  'request' | 'on'
> & {
  write(answer: { readonly status: string }, taken: () => void): unknown;
};

/**
 * Serves `grpc.health.v1` for the whole server (the empty name) and for each of its services. The library's Watch keeps
 * every name that is watched, even of unknown services, and writes to callers that take nothing.
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
    for (const watch of this.#watches) watch.send(this.#status);
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
