import type { Client } from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import type { CommandOutcome } from '../../../../src/actors/inbox/outcome.ts';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { type AppendEventsRequest, MasterService } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { LedgerNaming } from '../../../../src/service/audit/ledger-naming.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import type { PreparedCommand } from '../../../../src/service/idempotency/submit-once.ts';
import type { EventAppender } from '../../../../src/service/masters/append-event.ts';
import { appendStream } from '../../../../src/service/masters/append-stream.ts';
import { StreamsMemory } from '../../../../src/service/masters/stream-memory.ts';
import { grpcClient, openGrpcStream } from '../../../support/grpc-client.ts';
import { bearer, type ListeningNode, startListeningNode } from '../../../support/listening-node.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

describe('the budget of all streams', () => {
  test('is updated in steps of 64 KiB of all streams together, up and down', () => {
    const budget = new MemoryBudget(64 * MiB);
    const streams = new StreamsMemory(budget);
    const [one, other] = [{}, {}];
    streams.hold(one, 63 * KiB);
    expect(budget.heldBytes('stream')).toBe(0);
    streams.hold(other, KiB);
    expect(budget.heldBytes('stream')).toBe(64 * KiB);
    streams.hold(one, 200 * KiB);
    expect(budget.heldBytes('stream')).toBe(256 * KiB);
    streams.hold(one, -263 * KiB);
    expect(budget.heldBytes('stream')).toBe(0);
    streams.hold(other, -KiB);
    expect(budget.heldBytes()).toBe(0);
  });

  test('is a quarter of the node’s, and each stream may have its equal part of that', () => {
    const streams = new StreamsMemory(new MemoryBudget(64 * MiB));
    const [large, small] = [{}, {}];
    streams.hold(small, KiB);
    streams.hold(large, 16 * MiB - 2 * KiB);
    expect(streams.mayTake(large)).toBe(true);
    streams.hold(large, KiB);
    expect(streams.mayTake(large)).toBe(false);
    expect(streams.mayTake(small)).toBe(true);
    streams.hold(small, 8 * MiB);
    expect(streams.mayTake(small)).toBe(false);
    streams.hold(large, -16 * MiB + KiB);
    expect(streams.mayTake(small)).toBe(true);
  });

  test('lets a stream that holds nothing take one event while the node has no room, and no other stream', () => {
    const budget = new MemoryBudget(64 * MiB);
    const streams = new StreamsMemory(budget);
    const stream = {};
    budget.hold('request', 64 * MiB);
    expect(streams.mayTake(stream)).toBe(true);
    streams.hold(stream, KiB);
    expect(streams.mayTake(stream)).toBe(false);
    budget.release('request', 64 * MiB);
    expect(streams.mayTake(stream)).toBe(true);
  });
});

const call = {
  requestId: 'request',
  newId: () => 'stream',
  caller: { actorId: 'actor', mustSign: false },
  signal: new AbortController().signal,
  admitEvent: () => null,
  recordNamed: () => undefined,
  eventRefused: () => {},
  eventFailed: () => {},
} as unknown as Call;
const outcome = { event: { seq: 0, master: null }, replayed: false } as unknown as CommandOutcome;

type Prepare = (request: AppendEventsRequest) => Promise<PreparedCommand>;

function handlerOf(budget: MemoryBudget, prepare: Prepare, findLedger = async () => 'ledger') {
  const appender = {
    ledgerOf: () => null,
    findLedger,
    prepare: (_: Call, request: AppendEventsRequest) => prepare(request),
  };
  const naming = { master: () => undefined } as unknown as LedgerNaming;
  return appendStream(appender as unknown as EventAppender, naming, new StreamsMemory(budget), Date.now);
}

function event(index: number, payload: string): AppendEventsRequest {
  return { clientIndex: BigInt(index), uuid: 'x', eventType: 'NOTED', payload } as AppendEventsRequest;
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
}

/** Streams without end of events of so many characters, whose outcomes are taken one by one. */
function endless(handler: ReturnType<typeof handlerOf>, chars: number) {
  const stream = { taken: 0 };
  async function* events() {
    for (;;) {
      stream.taken += 1;
      yield event(stream.taken, 'y'.repeat(chars));
    }
  }
  const answers = handler(events(), call)[Symbol.asyncIterator]();
  const next = () => answers.next();
  return { stream, next, end: () => answers.return?.() };
}

test('an event that the rate of its caller does not allow is refused unread, and the stream says where to resume', async () => {
  const prepared: string[] = [];
  const handler = handlerOf(new MemoryBudget(64 * MiB), async ({ payload }) => {
    prepared.push(payload);
    return { kind: 'checked', submit: async () => outcome };
  });
  let [asked, refused] = [0, 0];
  const admitEvent = () => {
    asked += 1;
    const error = new LedgerError('rate_limited', 'Too many calls.', { retry_after_s: 2 });
    return asked === 2 ? { error, retryAfterMs: 2_000 } : null;
  };
  const eventRefused = () => {
    refused += 1;
  };
  const payloads = ['{"a":1}', `{"list":[${'0,'.repeat(199)}0]}`, '{"b":2}'];
  async function* events() {
    yield* payloads.map((payload, at) => event(at, payload));
  }
  const outcomes = [];
  for await (const answer of handler(events(), { ...call, admitEvent, eventRefused } as Call))
    outcomes.push(answer.outcome);
  expect(asked).toBe(3);
  expect(prepared).not.toContain(payloads[1]);
  expect(outcomes).toMatchObject([
    { case: 'appended' },
    { case: 'error', value: { code: 'rate_limited', resumeFrom: 1n } },
    { case: 'error', value: { code: 'unavailable', resumeFrom: 1n } },
  ]);
  // An event that the rate refused costs nothing more, and the one behind it can be sent again.
  expect(refused).toBe(0);
});

describe('streams whose budget is full', () => {
  test('256 streams whose events are not answered hold no more than half of the budget, and take their next in turn', async () => {
    const budget = new MemoryBudget(64 * MiB);
    const open: PromiseWithResolvers<CommandOutcome>[] = [];
    const prepare = async (): Promise<PreparedCommand> => ({
      kind: 'checked',
      submit: () => {
        const made = Promise.withResolvers<CommandOutcome>();
        open.push(made);
        return made.promise;
      },
    });
    const handler = handlerOf(budget, prepare);
    const streams = Array.from({ length: 256 }, () => endless(handler, 32 * KiB));
    const waiting = streams.map(({ next }) => next());
    await turns(100);
    const taken = () => streams.reduce((sum, { stream }) => sum + stream.taken, 0);
    const first = taken();
    expect(first).toBeGreaterThanOrEqual(256);
    expect(budget.heldBytes('stream')).toBeGreaterThan(16 * MiB);
    expect(budget.heldBytes('stream')).toBeLessThan(32 * MiB);
    for (let round = 0; round < 3; round += 1) {
      for (const one of open.splice(0)) one.resolve(outcome);
      await turns(20);
      await Promise.all(waiting.splice(0));
      waiting.push(...streams.map(({ next }) => next()));
      await turns(20);
      expect(budget.heldBytes('stream')).toBeLessThan(32 * MiB);
    }
    expect(taken()).toBeGreaterThan(first + 256);
    for (const { end } of streams) void end();
    for (const one of open.splice(0)) one.resolve(outcome);
    await expect
      .poll(() => {
        for (const one of open.splice(0)) one.resolve(outcome);
        return budget.heldBytes();
      })
      .toBe(0);
  });

  test('refusals with long details that nobody takes hold little', async () => {
    const budget = new MemoryBudget(64 * MiB);
    const details = { expected_canonical_json: 'z'.repeat(256 * KiB) };
    const prepare = () => Promise.reject(new LedgerError('invalid_signature', 'It does not verify.', details));
    const { stream, next, end } = endless(handlerOf(budget, prepare), 256 * KiB);
    await next();
    await turns(100);
    expect(stream.taken).toBeGreaterThan(16);
    expect(budget.heldBytes('stream')).toBeLessThan(stream.taken * 8 * KiB);
    await end();
    expect(budget.heldBytes()).toBe(0);
  });

  test('a stream goes on one by one while others fill the budget', async () => {
    const budget = new MemoryBudget(MiB);
    budget.hold('request', MiB);
    const prepare = async (): Promise<PreparedCommand> => ({ kind: 'checked', submit: async () => outcome });
    const { stream, next, end } = endless(handlerOf(budget, prepare), 10);
    for (let n = 1; n <= 20; n += 1) {
      expect((await next()).done).toBe(false);
      await turns(3);
      expect(stream.taken).toBe(n);
    }
    await end();
    expect(budget.heldBytes('stream')).toBe(0);
  });
});

describe('every end of a stream gives back what it held', () => {
  let node: ListeningNode | undefined;
  let client: Client | undefined;
  afterEach(async () => {
    client?.close();
    await node?.[Symbol.asyncDispose]();
  });

  test('an event whose ledger cannot be looked up', async () => {
    const budget = new MemoryBudget(64 * MiB);
    const unavailable = () => Promise.reject(new LedgerError('unavailable', 'The store cannot be reached.'));
    const { next } = endless(
      handlerOf(budget, () => unavailable(), unavailable),
      MiB,
    );
    await expect(next()).rejects.toMatchObject({ code: 'unavailable' });
    expect(budget.heldBytes()).toBe(0);
  });

  test.each<[string, (stream: ReturnType<typeof openGrpcStream>) => void]>([
    ['a hang-up', (stream) => stream.cancel()],
    ['a message that is too large', (stream) => void stream.write(event(99, 'y'.repeat(MiB)))],
    ['the last event', (stream) => void stream.end()],
    ['its deadline', () => {}],
    ['the stop of the node', () => void node?.grpc.close(100)],
  ])('%s', async (end, bringAbout) => {
    const memory = new MemoryBudget(64 * MiB);
    const open: ((outcome: CommandOutcome) => void)[] = [];
    const submit = () => new Promise<CommandOutcome>((resolve) => open.push(resolve));
    const handler = handlerOf(memory, async () => ({ kind: 'checked', submit }));
    node = await startListeningNode({ memory, handlers: { 'MasterService.AppendEvents': handler } });
    client = grpcClient(node.grpcAddress);
    const headers = end === 'its deadline' ? { ...bearer, 'grpc-timeout': '1500m' } : bearer;
    const stream = openGrpcStream(client, MasterService.method.appendEvents, headers);
    const ended = new Promise((resolve) => stream.once('status', resolve).on('error', () => {}));
    stream.on('data', () => {});
    for (let n = 0; n < 20; n += 1) stream.write(event(n, 'y'.repeat(200 * KiB)));
    await expect.poll(() => open.length).toBe(20);
    expect(memory.heldBytes('stream')).toBeGreaterThan(20 * 2 * 200 * KiB - 64 * KiB);
    bringAbout(stream);
    if (end === 'its deadline' || end === 'a hang-up') await ended;
    for (const resolve of open.splice(0)) resolve(outcome);
    await ended;
    await expect.poll(() => memory.heldBytes(end === 'the stop of the node' ? 'stream' : undefined)).toBe(0);
  });
});
