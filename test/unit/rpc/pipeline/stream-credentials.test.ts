import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { Auth } from '../../../../src/gen/svc/v1/options_pb.ts';
import type { IncomingCall } from '../../../../src/rpc/call/incoming-call.ts';
import type { RunningCall } from '../../../../src/rpc/call/running-call.ts';
import { StreamCredentials } from '../../../../src/rpc/pipeline/stream-credentials.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { bearer, fakeCredentials, goodKey, otherKey } from '../../../support/listening-node.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A live stream is not answered in place of its handler. */
function neverInPlace(): never {
  throw new Error('a live stream was answered for');
}

/** A live stream that came with a key, the errors that it ended with, and how often its headers were read. */
function streamOf(key = goodKey) {
  const ended: string[] = [];
  const header = vi.fn((name: string) =>
    name === 'authorization' ? bearer.authorization.replace(goodKey, key) : undefined,
  );
  const call = {
    endpoint: { rule: { auth: Auth.BEARER } },
    caller: { apiKeyId: `id-of-${key}`, actorId: 'a' },
    ending: null,
    endWith: ({ code }: LedgerError) => void ended.push(code),
  };
  return { incoming: { header, call } as unknown as IncomingCall, ended, header };
}

const pass = (checks: number) => vi.advanceTimersByTimeAsync(checks * limits.streamCredentialCheckMs);

test('all streams of a key end once it is revoked, and those of another key do not', async () => {
  const credentials = fakeCredentials();
  const live = new StreamCredentials(credentials, neverInPlace);
  const [one, two, other] = [streamOf(), streamOf(), streamOf(otherKey)];
  for (const { incoming } of [one, two, other]) live.watch(incoming);
  await pass(1);
  expect([one.ended, two.ended]).toEqual([[], []]);
  credentials.revoked.add(goodKey);
  await pass(1);
  expect([one.ended, two.ended, other.ended]).toEqual([['invalid_api_key'], ['invalid_api_key'], []]);
  for (const { incoming } of [one, two, other]) live.unwatch(incoming);
  expect(vi.getTimerCount()).toBe(0);
});

test('an API key that is revoked on this node ends its streams at once, and no others', () => {
  const credentials = fakeCredentials();
  let revoke: Parameters<typeof credentials.onRevoked>[0] = () => {};
  credentials.onRevoked = (tell) => {
    revoke = tell;
  };
  const live = new StreamCredentials(credentials, neverInPlace);
  const [own, other, requests] = [streamOf(), streamOf(otherKey), streamOf()];
  const stop = vi.fn();
  for (const incoming of [own.incoming, other.incoming, { ...requests.incoming, requests: { stop } }])
    live.watch(incoming);
  revoke(`id-of-${goodKey}`, new LedgerError('invalid_api_key', 'revoked'));
  expect([own.ended, other.ended]).toEqual([['invalid_api_key'], []]);
  expect(stop).toHaveBeenCalledOnce();
  expect(requests.incoming.call?.ending).toMatchObject({ code: 'invalid_api_key' });
});

test('the request of a stream that has ended is not read any more for the other streams of its key', async () => {
  const credentials = fakeCredentials();
  const live = new StreamCredentials(credentials, neverInPlace);
  const [first, second] = [streamOf(), streamOf()];
  live.watch(first.incoming);
  live.watch(second.incoming);
  live.unwatch(first.incoming);
  await pass(2);
  expect(first.header).not.toHaveBeenCalled();
  credentials.revoked.add(goodKey);
  await pass(1);
  expect([first.ended, second.ended]).toEqual([[], ['invalid_api_key']]);
});

test('a check that hangs stops neither the checks of other keys nor the later ones of its own', async () => {
  const credentials = fakeCredentials();
  const { byApiKey } = credentials;
  const live = new StreamCredentials(credentials, neverInPlace);
  const [hanging, other] = [streamOf(), streamOf(otherKey)];
  live.watch(hanging.incoming);
  live.watch(other.incoming);
  const asked: string[] = [];
  credentials.byApiKey = (key, unknown) => {
    asked.push(key);
    return key === goodKey ? new Promise(() => {}) : byApiKey(key, unknown);
  };
  await pass(1);
  credentials.revoked.add(otherKey);
  await pass(1);
  expect([hanging.ended, other.ended]).toEqual([[], ['invalid_api_key']]);
  // At most one check of the key in each such time waits for the store.
  expect(asked.filter((key) => key === goodKey)).toHaveLength(1);
  credentials.byApiKey = byApiKey;
  credentials.revoked.add(goodKey);
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMaxMs);
  expect(hanging.ended).toContain('invalid_api_key');
});

const noAnswers: [string, () => Promise<never>][] = [
  ['refuses', () => Promise.reject(new LedgerError('unavailable', 'away'))],
  ['hangs', () => new Promise(() => {})],
];
test.each(noAnswers)('streams go on for a while if the store %s, and not for longer', async (_, byApiKey) => {
  const credentials = fakeCredentials();
  const live = new StreamCredentials(credentials, neverInPlace);
  const stream = streamOf();
  live.watch(stream.incoming);
  const asked = vi.fn(byApiKey);
  credentials.byApiKey = asked;
  await vi.advanceTimersByTimeAsync(limits.streamCredentialUnknownMs);
  expect(asked.mock.calls.length).toBeGreaterThan(10);
  expect(stream.ended).toEqual([]);
  await pass(1);
  expect(stream.ended).toEqual(['unavailable']);
});

test('a store that answers again keeps the streams', async () => {
  const credentials = fakeCredentials();
  const live = new StreamCredentials(credentials, neverInPlace);
  const stream = streamOf();
  live.watch(stream.incoming);
  const { byApiKey } = credentials;
  for (let n = 0; n < 3; n += 1) {
    credentials.byApiKey = () => Promise.reject(new LedgerError('unavailable', 'away'));
    await vi.advanceTimersByTimeAsync(limits.streamCredentialUnknownMs - limits.streamCredentialCheckMs);
    credentials.byApiKey = byApiKey;
    await pass(1);
  }
  expect(stream.ended).toEqual([]);
});

test('a credential whose record cannot be read ends its streams, as it is refused for new ones', async () => {
  const credentials = fakeCredentials();
  const live = new StreamCredentials(credentials, neverInPlace);
  const stream = streamOf();
  live.watch(stream.incoming);
  credentials.byApiKey = () => Promise.reject(new TypeError('no JSON'));
  await pass(1);
  expect(stream.ended).toEqual(['internal']);
});

/** A stream of requests whose credential is watched. */
function watched() {
  const credentials = fakeCredentials();
  const aborts: string[] = [];
  const failures: LedgerError[] = [];
  const stop = vi.fn();
  const call = {
    endpoint: { rule: { auth: Auth.BEARER } },
    caller: { apiKeyId: 'id', actorId: 'a' },
    ending: null as LedgerError | null,
    answered: false,
    abort: (reason: string) => void aborts.push(reason),
  };
  const header = (name: string) => (name === 'authorization' ? bearer.authorization : undefined);
  const incoming = { header, call, requests: { stop } } as unknown as IncomingCall;
  const answerFor = (_call: RunningCall, _incoming: IncomingCall, error: LedgerError) => void failures.push(error);
  const streams = new StreamCredentials(credentials, answerFor);
  streams.watch(incoming);
  const unwatch = () => {
    streams.unwatch(incoming);
    expect(vi.getTimerCount()).toBe(0);
  };
  return { credentials, call, unwatch, stop, aborts, failures };
}

test('a stream of requests whose credential ended takes no more, and ends with that error after all outcomes', async () => {
  const { credentials, call, unwatch, stop, failures } = watched();
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMs);
  expect(stop).not.toHaveBeenCalled();
  credentials.revoked.add(goodKey);
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMs);
  expect(stop).toHaveBeenCalledOnce();
  expect(call.ending).toMatchObject({ code: 'invalid_api_key' });
  // The handler has ended: the pipeline answers with `ending`.
  unwatch();
  await vi.advanceTimersByTimeAsync(2 * limits.streamLastOutcomesMs);
  expect(failures).toEqual([]);
});

test('a stream whose requests have no outcome by then ends with outcome_unknown', async () => {
  const { credentials, call, unwatch, aborts, failures } = watched();
  credentials.revoked.add(goodKey);
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMs + limits.streamLastOutcomesMs - 1);
  expect(failures).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(failures).toMatchObject([{ code: 'outcome_unknown' }]);
  expect(call).toMatchObject({ answered: true, ending: { code: 'outcome_unknown' } });
  expect(aborts).toHaveLength(1);
  unwatch();
});

test('a stream that was answered meanwhile is not answered twice', async () => {
  const { credentials, call, unwatch, failures } = watched();
  credentials.revoked.add(goodKey);
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMs);
  call.answered = true;
  await vi.advanceTimersByTimeAsync(limits.streamLastOutcomesMs);
  expect(failures).toEqual([]);
  unwatch();
});

test('a stream of requests goes on if the store is unavailable', async () => {
  const { credentials, call, unwatch, stop } = watched();
  credentials.byApiKey = () => Promise.reject(new LedgerError('unavailable', 'away'));
  await vi.advanceTimersByTimeAsync(4 * limits.streamCredentialCheckMs);
  expect(stop).not.toHaveBeenCalled();
  expect(call.ending).toBeNull();
  unwatch();
});
