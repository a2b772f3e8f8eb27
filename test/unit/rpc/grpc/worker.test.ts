import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import {
  type AppendEventRequest,
  type AppendEventsRequest,
  MasterService,
} from '../../../../src/gen/svc/v1/masters_pb.ts';
import { FrameBacklog } from '../../../../src/rpc/grpc/frame-backlog.ts';
import { openGrpcListener } from '../../../../src/rpc/grpc/main/listener.ts';
import { SeededRandom } from '../../../simulation/random.ts';
import { attackerOf, untilClosed } from '../../../support/attacks/grpc-connections.ts';
import { callHeaders, endHeaders, frame, frameType } from '../../../support/attacks/http2-frames.ts';
import { callGrpc, grpcClient, openGrpcStream } from '../../../support/grpc-client.ts';
import { bearer, listeningNodeForTests, masterId } from '../../../support/listening-node.ts';

const random = new SeededRandom(24);

const node = await listeningNodeForTests({
  handlers: {
    'MasterService.AppendEvent': async ({ eventType }: AppendEventRequest) => {
      await delay(random.between(0, 8));
      return { hash: eventType };
    },
    'MasterService.AppendEvents': async function* (requests: AsyncIterable<AppendEventsRequest>) {
      for await (const { clientIndex, eventType } of requests)
        yield { clientIndex, outcome: { case: 'appended', value: { replayed: false, event: { hash: eventType } } } };
    },
  },
});
const client = grpcClient(node.grpcAddress);
afterAll(() => client.close());

test('calls that begin and end at random get their own answers only', async () => {
  let answered = 0;
  let givenUp = 0;
  const unary = async (name: string) => {
    const request = { uuid: masterId, eventType: name, payload: '{}' };
    const deadlineMs = random.chance(0.3) ? random.between(1, 6) : 10_000;
    const { message } = await callGrpc(client, MasterService.method.appendEvent, request, bearer, deadlineMs);
    if (message === null) givenUp += 1;
    else {
      answered += 1;
      expect(message).toMatchObject({ hash: name });
    }
  };
  const stream = (name: string) =>
    new Promise<void>((resolve) => {
      const own = openGrpcStream(client, MasterService.method.appendEvents, bearer);
      const requests = random.between(1, 20);
      const until = random.chance(0.5) ? requests : random.between(0, requests - 1);
      let got = 0;
      own.on('data', (answer: { outcome: { value: { event: { hash: string } } } }) => {
        expect(answer.outcome.value.event.hash).toBe(`${name} ${got}`);
        got += 1;
        answered += 1;
        if (got === until && until < requests) own.cancel();
      });
      own.on('end', resolve).on('error', () => {
        givenUp += 1;
        resolve();
      });
      for (let at = 0; at < requests; at++) own.write({ clientIndex: BigInt(at), eventType: `${name} ${at}` });
      own.end();
      if (until === 0) own.cancel();
    });
  const worker = async (at: number) => {
    for (let round = 0; round < 30; round++) {
      const name = `${at}.${round}`;
      await (random.chance(0.7) ? unary(name) : stream(name));
    }
  };
  await Promise.all(Array.from({ length: 24 }, (_, at) => worker(at)));
  expect(answered).toBeGreaterThan(500);
  expect(givenUp).toBeGreaterThan(50);
  await expect.poll(() => node.pipeline.running.size).toBe(0);
});

test('the port’s thread counts what it has posted until the main thread has handled it', async () => {
  const removed = vi.spyOn(FrameBacklog.prototype, 'remove');
  onTestFinished(() => void removed.mockRestore());
  const request = { uuid: masterId, eventType: 'A', payload: '{}' };
  await callGrpc(client, MasterService.method.appendEvent, request, bearer);
  const { shared } = removed.mock.contexts[0] as FrameBacklog;
  const waiting = () => Atomics.load(new Int32Array(shared), 0);
  await expect.poll(waiting).toBe(0);
  const over = new AbortController();
  const attacker = await attackerOf({ grpc: node.grpcAddress }, over.signal);
  const call = callHeaders('/svc.v1.MasterService/AppendEvent');
  // A write goes to the kernel at once. Then the main thread does nothing until something waits for it.
  void attacker.send(frame(frameType.headers, endHeaders, attacker.nextStream(), call));
  const still = new Int32Array(new SharedArrayBuffer(4));
  for (let at = 0; at < 500 && waiting() === 0; at += 1) Atomics.wait(still, 0, 0, 10);
  expect(waiting()).toBeGreaterThan(0);
  over.abort();
  await untilClosed(attacker);
  await expect.poll(waiting).toBe(0);
});

test('a port that is in use rejects with the error code', async () => {
  const { pipeline, grpc, memory } = node;
  const answers = { unrouted: () => {} };
  const given = { endpoints: new Map(), pipeline, answers, clientAddress: () => '', newId: () => '' };
  const bounds = { connectionRequestBytes: 1, connectionAnswerBytes: 1 };
  const parts = { ...given, tls: null, bounds, connectionsMax: 100, memory, now: Date.now };
  await expect(openGrpcListener(parts, '127.0.0.1', grpc.port)).rejects.toMatchObject({
    message: expect.stringContaining(`Cannot listen on 127.0.0.1 port ${grpc.port}`),
    cause: { code: 'EADDRINUSE' },
  });
});
