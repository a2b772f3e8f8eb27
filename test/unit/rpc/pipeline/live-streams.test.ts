import { afterEach, expect, test, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { LedgerService } from '../../../../src/gen/svc/v1/ledgers_pb.ts';
import { Auth } from '../../../../src/gen/svc/v1/options_pb.ts';
import type { StreamCall } from '../../../../src/rpc/call/incoming-call.ts';
import type { RunningCall } from '../../../../src/rpc/call/running-call.ts';
import type { Endpoint } from '../../../../src/rpc/endpoints/endpoint.ts';
import { createPipeline } from '../../../../src/rpc/pipeline/pipeline.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import type { Call } from '../../../../src/service/calls/call.ts';
import type { PushedAnswers, Send } from '../../../../src/service/calls/pushed-answers.ts';
import { fakeCredentials } from '../../../support/listening-node.ts';

afterEach(() => void vi.useRealTimers());

/** A live stream whose reader takes each message as `send` says, and what became of the call. */
function liveCall(
  handler: (request: unknown, call: Call) => Promise<PushedAnswers<object>>,
  send: () => Promise<void> | undefined,
) {
  const outcome: { error: LedgerError | null; isEnded: boolean; sent: number } = {
    error: null,
    isEnded: false,
    sent: 0,
  };
  const answers = { succeeded: () => undefined, failed: () => undefined, late: () => {}, recordStream: () => {} };
  const parts = { answers, now: () => 0, monotonicMs: () => 0, random: (length: number) => Buffer.alloc(length) };
  const pipeline = createPipeline({
    ...parts,
    credentials: fakeCredentials(),
    rates: { admit: () => {}, admitRequest: () => {}, charge: () => {} },
  } as unknown as Parameters<typeof createPipeline>[0]);
  const { followLedgerEvents: method } = LedgerService.method;
  const rule = { auth: Auth.NONE, live: true };
  const endpoint = { method, rule, handler, rpcPath: '/x', route: null } as unknown as Endpoint;
  const incoming = {
    transport: 'grpc',
    call: null as RunningCall | null,
    timeoutMs: Number.POSITIVE_INFINITY,
    header: () => undefined,
    address: () => '127.0.0.1',
    receive: () => undefined,
    received: Buffer.alloc(0),
    decode: () => ({ message: {}, json: new Map() }),
    send: () => {
      outcome.sent += 1;
      return send();
    },
    end: () => {
      outcome.isEnded = true;
    },
    fail: (_call: RunningCall, error: LedgerError) => {
      outcome.error = error;
    },
  };
  const done = pipeline.serverStream(endpoint, incoming as unknown as StreamCall);
  return { outcome, done, hangUp: () => pipeline.running.hangUp(incoming) };
}

/** Answers without end, until they are stopped. */
class Endless implements PushedAnswers<object> {
  isStopped = false;

  async sendTo(send: Send<object>): Promise<void> {
    while (!this.isStopped) await send({});
  }

  stop(): void {
    this.isStopped = true;
  }
}

const endless = async () => new Endless();

test('a reader that takes nothing for a minute is ended, and is told where to go on', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { outcome, done } = liveCall(endless, () => new Promise(() => {}));
  await vi.advanceTimersByTimeAsync(limits.liveStallMs - 1);
  expect(outcome).toMatchObject({ error: null, sent: 1 });
  await vi.advanceTimersByTimeAsync(1);
  await done;
  expect(outcome).toMatchObject({ error: { code: 'unavailable' }, sent: 1, isEnded: false });
});

test('a reader that takes something in time is not ended', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const slow = () => new Promise<void>((resolve) => void setTimeout(resolve, limits.liveStallMs / 2));
  const { outcome, hangUp, done } = liveCall(endless, slow);
  await vi.advanceTimersByTimeAsync(3 * limits.liveStallMs);
  expect(outcome.error).toBeNull();
  expect(outcome.sent).toBeGreaterThan(5);
  hangUp();
  await done;
  // The caller of a live stream ends it by leaving: that is no failure.
  expect(outcome).toMatchObject({ error: null, isEnded: true });
});

test('a stream ends while its reader takes nothing, and nothing more is sent', async () => {
  let own: Call | null = null;
  const { outcome, done } = liveCall(
    (_request, call) => {
      own = call;
      return endless();
    },
    () => new Promise(() => {}),
  );
  await vi.waitFor(() => expect(outcome.sent).toBe(1));
  (own as Call | null)?.endWith(new LedgerError('permission_denied', 'revoked'));
  await done;
  expect(outcome).toMatchObject({ error: { code: 'permission_denied' }, sent: 1 });
});

test('a stream ends while its handler opens it, and what is opened later is left unread', async () => {
  const { promise: opening, resolve: open } = Promise.withResolvers<PushedAnswers<object>>();
  let own: Call | null = null;
  const { outcome, done } = liveCall(
    (_request, call) => {
      own = call;
      return opening;
    },
    () => undefined,
  );
  await vi.waitFor(() => expect(own).not.toBeNull());
  (own as Call | null)?.endWith(new LedgerError('invalid_api_key', 'revoked'));
  await done;
  expect(outcome).toMatchObject({ error: { code: 'invalid_api_key' }, sent: 0 });
  const late = new Endless();
  open(late);
  await vi.waitFor(() => expect(late.isStopped).toBe(true));
  expect(outcome.sent).toBe(0);
});
