import { once } from 'node:events';
import { Client, credentials, ServerCredentials, type ServerWritableStream } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { Connections } from '../../../../src/rpc/grpc/connections.ts';
import { FrameWriter, type WorkerCall } from '../../../../src/rpc/grpc/frames.ts';
import { Health } from '../../../../src/rpc/grpc/worker/health.ts';
import { AnsweringServer } from '../../../../src/rpc/grpc/worker/worker-refusals.ts';
import { Slab } from '../../../../src/runtime/collections/slab.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';

/** A caller of Watch, and what it is told. */
class Watching {
  readonly told: string[] = [];
  /** Each is called once the caller has taken what was written. */
  readonly untaken: (() => void)[] = [];

  send(state: string, taken: () => void): void {
    this.told.push(state);
    this.untaken.push(taken);
  }

  take(): void {
    this.untaken.shift()?.();
  }
}

test('a watch of a service is told of its changes until its caller has gone, and one of an unknown service of none', () => {
  const health = new Health(['svc.v1.MasterService']);
  const [one, none] = [new Watching(), new Watching()];
  const end = health.watch('svc.v1.MasterService', one);
  health.watch('x'.repeat(1_000_000), none);
  one.take();
  none.take();
  health.setServing(false);
  expect(one.told).toEqual(['SERVING', 'NOT_SERVING']);
  expect(none.told).toEqual(['SERVICE_UNKNOWN']);
  one.take();
  end();
  health.setServing(true);
  expect(one.told).toHaveLength(2);
});

test('a watch that takes nothing is told only the last state, once it takes the earlier one', () => {
  const health = new Health([]);
  const watching = new Watching();
  health.watch('', watching);
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
