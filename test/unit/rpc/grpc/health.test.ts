import { EventEmitter, once } from 'node:events';
import { Client, credentials, ServerCredentials, type ServerWritableStream, status } from '@grpc/grpc-js';
import { service } from 'grpc-health-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Connections } from '../../../../src/rpc/grpc/connections.ts';
import { FrameReader, FrameWriter, type WorkerCall, workerEvent } from '../../../../src/rpc/grpc/frames.ts';
import { Health } from '../../../../src/rpc/grpc/worker/health.ts';
import { AnsweringServer } from '../../../../src/rpc/grpc/worker/worker-refusals.ts';
import { Slab } from '../../../../src/runtime/collections/slab.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';

const methods = service as Record<'Check' | 'List' | 'Watch', (typeof service)[string]>;

/** A call of Watch, and what its caller is told. */
class Watching extends EventEmitter {
  readonly request: Buffer;
  readonly told: unknown[] = [];
  /** Each is called once the caller has taken what was written. */
  readonly untaken: (() => void)[] = [];
  cancelled = false;

  constructor(name: string) {
    super();
    this.request = methods.Watch.requestSerialize({ service: name });
  }

  write(answer: Buffer, taken: () => void): void {
    this.told.push((methods.Watch.responseDeserialize(answer) as { readonly status: string }).status);
    this.untaken.push(taken);
  }

  take(): void {
    this.untaken.shift()?.();
  }

  cancel(): void {
    this.cancelled = true;
    this.emit('cancelled');
  }
}

/** Begins a call of Watch. */
function watched(health: Health, name: string): Watching {
  const handlers = new Map<string, unknown>();
  health.addTo({ register: (path, handler) => handlers.set(path, handler).size > 0 });
  const watching = new Watching(name);
  (handlers.get('/grpc.health.v1.Health/Watch') as (call: Watching) => void)(watching);
  return watching;
}

const ledgers = 'svc.v1.LedgerService';

test('a watch of a service is told of its changes until its caller has gone, one of an unknown service of none', async () => {
  const health = new Health([ledgers], async () => methods);
  const [one, none] = [watched(health, ledgers), watched(health, 'x'.repeat(1_000_000))];
  await expect.poll(() => [one.told, none.told]).toEqual([['SERVING'], ['SERVICE_UNKNOWN']]);
  one.take();
  none.take();
  health.setServing(false);
  expect([one.told, none.told]).toEqual([['SERVING', 'NOT_SERVING'], ['SERVICE_UNKNOWN']]);
  one.take();
  one.cancel();
  health.setServing(true);
  expect(one.told).toHaveLength(2);
});

test('a watch that takes nothing is told only the last state, once it takes the earlier one', async () => {
  const health = new Health([], async () => methods);
  const watching = watched(health, '');
  await expect.poll(() => watching.told).toEqual(['SERVING']);
  for (let change = 0; change < 101; change += 1) health.setServing(change % 2 === 1);
  expect(watching.told).toEqual(['SERVING']);
  watching.take();
  expect(watching.told).toEqual(['SERVING', 'NOT_SERVING']);
  watching.take();
  expect(watching.told).toHaveLength(2);
});

test('a watch that waits while the library loads gets the state of then, and nothing if its caller has gone', async () => {
  const loading = Promise.withResolvers<typeof methods>();
  const health = new Health([ledgers], () => loading.promise);
  const [one, gone] = [watched(health, ledgers), watched(health, ledgers)];
  health.setServing(false);
  gone.cancel();
  loading.resolve(methods);
  await expect.poll(() => one.told).toEqual(['NOT_SERVING']);
  one.take();
  health.setServing(true);
  expect([one.told, gone.told]).toEqual([['NOT_SERVING', 'SERVING'], []]);
});

describe('on a server', () => {
  const asIs = (bytes: Buffer): Buffer => bytes;
  /** What the server passes to the main thread, of which there is none: refused calls get no answer. */
  const frames = Promise.withResolvers<FrameReader>();
  const writer = new FrameWriter((bytes) => frames.resolve(new FrameReader(bytes)));
  const connections = new Connections(
    { connectionRequestBytes: 1, connectionAnswerBytes: 1 },
    100,
    new MemoryBudget(1_000_000),
  );
  // One for both tests: a thread may have no more.
  const server = new AnsweringServer({ calls: new Slab<WorkerCall>(), writer, connections, methods: new Map() }, {});
  let client: Client;

  beforeAll(async () => {
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  });
  afterAll(() => {
    client.close();
    server.forceShutdown();
  });

  test('a call is refused as unavailable where the library cannot be loaded', async () => {
    new Health([ledgers], () => Promise.reject(new Error('gone'))).addTo(server);
    const path = '/grpc.health.v1.Health/Check';
    client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), () => {});
    const refused = await frames.promise;
    expect([refused.u8(), refused.u32(), refused.u8()]).toEqual([workerEvent.refused, 0, status.UNAVAILABLE]);
    expect(refused.f64()).toBeGreaterThanOrEqual(0);
    expect(refused.texts()).toEqual([path, 'unavailable', expect.stringContaining('restart the node'), '', '']);
  });

  test('the handler of a standard method is told that its caller’s deadline has passed', async () => {
    const path = '/grpc.test/Watch';
    const called = Promise.withResolvers<ServerWritableStream<Buffer, Buffer>>();
    server.register(path, called.resolve, asIs, asIs, 'serverStream');
    const stream = client.makeServerStreamRequest(path, asIs, asIs, Buffer.alloc(0), { deadline: Date.now() + 200 });
    stream.on('error', () => {});
    await once(await called.promise, 'cancelled');
  });
});
