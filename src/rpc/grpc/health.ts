import type { Server, ServerWritableStream, UntypedServiceImplementation } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';

type Watch = (call: ServerWritableStream<{ readonly service: string }, { readonly status: string }>) => void;

/**
 * `grpc.health.v1` for the server as a whole (the empty name) and for each of its services. The library keeps the name of whatever is
 * watched for as long as it runs, so it never sees one that is not there: whoever watches such a one is told so, as its protocol says.
 */
export class Health {
  readonly #names: ReadonlySet<string>;
  readonly #implementation = new HealthImplementation();

  constructor(services: readonly string[]) {
    this.#names = new Set(['', ...services]);
    this.setServing(true);
  }

  setServing(serving: boolean): void {
    for (const name of this.#names) this.#implementation.setStatus(name, serving ? 'SERVING' : 'NOT_SERVING');
  }

  addTo(server: Server): void {
    this.#implementation.addToServer({
      addService: (definition: Parameters<Server['addService']>[0], methods: UntypedServiceImplementation) =>
        server.addService(definition, { ...methods, watch: this.#known(methods.watch as Watch) }),
    });
  }

  #known(watch: Watch): Watch {
    return (call) => {
      if (this.#names.has(call.request.service)) watch(call);
      else call.write({ status: 'SERVICE_UNKNOWN' });
    };
  }
}
