import { afterEach, expect, test, vi } from 'vitest';
import { type ErrorCode, LedgerError, notFound } from '../../../../src/domain/errors.ts';
import type { AppendEventsRequest } from '../../../../src/gen/svc/v1/masters_pb.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { MemoryBudget } from '../../../../src/runtime/limits/memory-budget.ts';
import type { LedgerNaming } from '../../../../src/service/audit/ledger-naming.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import type { EventAppender } from '../../../../src/service/masters/append-event.ts';
import { appendStream } from '../../../../src/service/masters/append-stream.ts';
import { StreamsMemory } from '../../../../src/service/masters/stream-memory.ts';

afterEach(() => void vi.useRealTimers());

const naming = { master: () => undefined } as unknown as LedgerNaming;
const appender = {
  ledgerOf: () => 'ledger',
  prepare: () => Promise.reject(notFound('master')),
} as unknown as EventAppender;

/** A stream without end, whose events are all refused: by the rate if the caller owes calls. */
function endless() {
  const counts = { taken: 0, refused: 0, owes: false, retryAfterMs: 9_000 };
  const error = new LedgerError('rate_limited', 'Too many calls.', { retry_after_s: 9 });
  async function* events() {
    for (;;) {
      counts.taken += 1;
      yield { clientIndex: BigInt(counts.taken), uuid: 'x', eventType: 'NOTED', payload: '{}' } as AppendEventsRequest;
    }
  }
  const call = {
    requestId: 'request',
    newId: () => 'stream',
    caller: { actorId: 'actor', mustSign: false },
    recordNamed: () => undefined,
    admitEvent: () => (counts.owes ? { error, retryAfterMs: counts.retryAfterMs } : null),
    eventRefused: () => {
      counts.refused += 1;
    },
    eventFailed: () => {},
  } as unknown as Call;
  const memory = new StreamsMemory(new MemoryBudget(64 * 1024 * 1024));
  const answers = appendStream(appender, naming, memory, Date.now)(events(), call)[Symbol.asyncIterator]();
  return { counts, answers };
}

/** The outcomes of a stream of so many events, each of which is refused with this error when it is prepared. */
async function refusedWith(error: Error, count: number) {
  const counts = { prepared: 0, charged: 0 };
  const failing = {
    ledgerOf: () => 'ledger',
    prepare: () => {
      counts.prepared += 1;
      return Promise.reject(error);
    },
  } as unknown as EventAppender;
  async function* events() {
    for (let at = 0; at < count; at += 1) {
      yield { clientIndex: BigInt(at), uuid: 'x', eventType: 'NOTED', payload: '{}' } as AppendEventsRequest;
      await new Promise(setImmediate);
    }
  }
  const call = {
    requestId: 'request',
    newId: () => 'stream',
    caller: { actorId: 'actor', mustSign: false },
    admitEvent: () => null,
    recordNamed: () => undefined,
    eventRefused: () => {
      counts.charged += 1;
    },
    eventFailed: () => {},
  } as unknown as Call;
  const memory = new StreamsMemory(new MemoryBudget(64 * 1024 * 1024));
  const codes: unknown[] = [];
  for await (const { outcome } of appendStream(failing, naming, memory, Date.now)(events(), call))
    codes.push(outcome.case === 'error' ? outcome.value.code : outcome.case);
  return { ...counts, codes };
}

const codeOf = async ({ answers }: ReturnType<typeof endless>) => {
  const { outcome } = ((await answers.next()) as { value: { outcome: { value: { code?: string } } } }).value;
  return outcome.value.code;
};

test('each refused event counts as a call, but one that the rate refused', async () => {
  const stream = endless();
  for (let at = 0; at < 5; at += 1) expect(await codeOf(stream)).toBe('not_found');
  const { refused } = stream.counts;
  expect(refused).toBeGreaterThanOrEqual(5);
  stream.counts.owes = true;
  for (let code: unknown = ''; code !== 'rate_limited'; ) code = await codeOf(stream);
  expect(stream.counts.refused).toBeLessThan(stream.counts.taken);
  await stream.answers.return?.();
});

test.each<ErrorCode>(['unavailable', 'overloaded', 'outcome_unknown', 'internal'])(
  'an event that fails with %s costs nothing, and those behind it are refused unprepared, at no cost',
  async (code) => {
    const { codes, prepared, charged } = await refusedWith(new LedgerError(code, 'A failure.'), 5);
    expect({ prepared, charged }).toEqual({ prepared: 1, charged: 0 });
    expect(codes).toEqual([code, 'unavailable', 'unavailable', 'unavailable', 'unavailable']);
  },
);

test('an event that fails for its own fault costs a call, and those behind it are prepared', async () => {
  expect(await refusedWith(notFound('master'), 3)).toMatchObject({ prepared: 3, charged: 3 });
});

test('a stream goes on as soon as its caller owes no calls', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const stream = endless();
  Object.assign(stream.counts, { owes: true, retryAfterMs: 3 });
  expect(await codeOf(stream)).toBe('rate_limited');
  const next = codeOf(stream);
  vi.advanceTimersByTime(2);
  await new Promise(setImmediate);
  expect(stream.counts.taken).toBe(1);
  vi.advanceTimersByTime(1);
  expect(await next).toBe('rate_limited');
  await stream.answers.return?.();
});

test('while its caller owes many calls, a stream takes one event a second', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const stream = endless();
  const { counts } = stream;
  counts.owes = true;
  expect(await codeOf(stream)).toBe('rate_limited');
  const turns = async () => {
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  };
  await turns();
  expect(counts.taken).toBe(1);
  for (let second = 2; second < 5; second += 1) {
    vi.advanceTimersByTime(limits.streamRateWaitMs - 1);
    await turns();
    expect(counts.taken).toBe(second - 1);
    vi.advanceTimersByTime(1);
    expect(await codeOf(stream)).toBe('rate_limited');
    await turns();
    expect(counts.taken).toBe(second);
  }
  counts.owes = false;
  vi.advanceTimersByTime(limits.streamRateWaitMs);
  for (let at = 0; at < 20; at += 1) await codeOf(stream);
  expect(counts.taken).toBeGreaterThan(20);
  await stream.answers.return?.();
});
