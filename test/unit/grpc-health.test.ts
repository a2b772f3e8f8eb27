import { EventEmitter, once } from 'node:events';
import {
  Client,
  credentials,
  type Server,
  ServerCredentials,
  type ServerWritableStream,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { Slots } from '../../src/domain/slots.ts';
import { Outbox } from '../../src/rpc/grpc/frames.ts';
import { Health } from '../../src/rpc/grpc/health.ts';
import { AnsweringServer } from '../../src/rpc/grpc/thread-refusals.ts';

/** A watch of the health of `service`, and what its caller is told. */
class Watching extends EventEmitter {
  readonly request: { readonly service: string };
  readonly told: string[] = [];

  constructor(service: string) {
    super();
    this.request = { service };
  }

  write({ status }: { readonly status: string }): void {
    this.told.push(status);
  }
}

function watched(health: Health, service: string): Watching {
  let methods: UntypedServiceImplementation = {};
  const addService = (_: unknown, given: UntypedServiceImplementation): void => {
    methods = given;
  };
  health.addTo({ addService } as unknown as Server);
  const watching = new Watching(service);
  (methods.watch as unknown as (call: Watching) => void)(watching);
  return watching;
}

test('who watches a service hears of its changes, and nothing is kept of one that is not there', () => {
  const health = new Health(['svc.v1.MasterService']);
  const one = watched(health, 'svc.v1.MasterService');
  const none = watched(health, 'x'.repeat(1_000_000));
  health.setServing(false);
  expect(one.told).toEqual(['SERVING', 'NOT_SERVING']);
  expect(none.told).toEqual(['SERVICE_UNKNOWN']);
  // What is kept is let go of when its caller has gone.
  expect([one, none].map((watching) => watching.listenerCount('cancelled'))).toEqual([1, 0]);
});

test('a handler of a standard method hears that its caller’s deadline has passed', async () => {
  const asIs = (bytes: Buffer): Buffer => bytes;
  const path = '/grpc.test/Watch';
  const server = new AnsweringServer(new Slots(), new Outbox(() => {}), {});
  const called = Promise.withResolvers<ServerWritableStream<Buffer, Buffer>>();
  server.register(path, called.resolve, asIs, asIs, 'serverStream');
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const stream = client.makeServerStreamRequest(path, asIs, asIs, Buffer.alloc(0), { deadline: Date.now() + 200 });
  stream.on('error', () => {});
  await once(await called.promise, 'cancelled');
  client.close();
  server.forceShutdown();
});
