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
import { Connections } from '../../../../src/rpc/grpc/connections.ts';
import { FrameWriter, type WorkerCall } from '../../../../src/rpc/grpc/frames.ts';
import { Health } from '../../../../src/rpc/grpc/worker/health.ts';
import { AnsweringServer } from '../../../../src/rpc/grpc/worker/worker-refusals.ts';
import { Slab } from '../../../../src/runtime/collections/slab.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';

/** A watch of the health of `service`, and what its caller is told. */
class Watching extends EventEmitter {
  readonly request: { readonly service: string };
  readonly told: string[] = [];

  constructor(service: string) {
    super();
    this.request = { service };
  }

  /** Calls back once its caller has taken what was written. */
  readonly untaken: (() => void)[] = [];

  write({ status }: { readonly status: string }, taken: () => void): void {
    this.told.push(status);
    this.untaken.push(taken);
  }

  take(): void {
    this.untaken.shift()?.();
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

test('a watch of a service is told of its changes, and nothing is kept for an unknown service', () => {
  const health = new Health(['svc.v1.MasterService']);
  const one = watched(health, 'svc.v1.MasterService');
  const none = watched(health, 'x'.repeat(1_000_000));
  one.take();
  health.setServing(false);
  expect(one.told).toEqual(['SERVING', 'NOT_SERVING']);
  expect(none.told).toEqual(['SERVICE_UNKNOWN']);
  // What is kept is let go of when its caller has gone.
  expect([one, none].map((watching) => watching.listenerCount('cancelled'))).toEqual([1, 0]);
});

test('a watch that takes nothing is told only the last state, once it takes the earlier one', () => {
  const health = new Health([]);
  const watching = watched(health, '');
  for (let change = 0; change < 101; change += 1) health.setServing(change % 2 === 1);
  expect(watching.told).toEqual(['SERVING']);
  watching.take();
  expect(watching.told).toEqual(['SERVING', 'NOT_SERVING']);
  watching.take();
  expect(watching.told).toHaveLength(2);
});

test('the handler of a standard method is told that its caller’s deadline has passed', async () => {
  const asIs = (bytes: Buffer): Buffer => bytes;
  const path = '/grpc.test/Watch';
  const connections = new Connections({ connectionRequestBytes: 1, connectionAnswerBytes: 1 }, new MemoryBudget(1_000));
  const parts = { calls: new Slab<WorkerCall>(), writer: new FrameWriter(() => {}), connections, methods: new Map() };
  const server = new AnsweringServer(parts, {});
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
