import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LedgerError } from '../../../../src/domain/errors.ts';
import { Auth } from '../../../../src/gen/svc/v1/options_pb.ts';
import type { BidiCall } from '../../../../src/rpc/call/incoming-call.ts';
import type { RunningCall } from '../../../../src/rpc/call/running-call.ts';
import { watchCredential } from '../../../../src/rpc/pipeline/stream-credential.ts';
import { limits } from '../../../../src/runtime/limits/limits.ts';
import { bearer, fakeCredentials, goodKey } from '../../../support/listening-node.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function watched() {
  const credentials = fakeCredentials();
  const aborts: string[] = [];
  const failures: LedgerError[] = [];
  const stop = vi.fn();
  const call = {
    endpoint: { rule: { auth: Auth.BEARER } },
    ending: null as LedgerError | null,
    answered: false,
    abort: (reason: string) => void aborts.push(reason),
  };
  const incoming = {
    header: (name: string) => (name === 'authorization' ? bearer.authorization : undefined),
    requests: { stop },
  };
  const answerFor = (_call: RunningCall, _incoming: BidiCall, error: LedgerError) => void failures.push(error);
  const watch = watchCredential(
    credentials,
    call as unknown as RunningCall,
    incoming as unknown as BidiCall,
    answerFor,
  );
  return { credentials, call, watch, stop, aborts, failures };
}

test('a stream whose credential ended takes no more requests, and ends with that error after all outcomes', async () => {
  const { credentials, call, watch, stop, failures } = watched();
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMs);
  expect(stop).not.toHaveBeenCalled();
  credentials.revoked.add(goodKey);
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMs);
  expect(stop).toHaveBeenCalledOnce();
  expect(call.ending).toMatchObject({ code: 'invalid_api_key' });
  // The handler has ended: the pipeline answers with `ending`.
  watch[Symbol.dispose]();
  await vi.advanceTimersByTimeAsync(2 * limits.streamLastOutcomesMs);
  expect(failures).toEqual([]);
});

test('a stream whose events have no outcome by then ends with outcome_unknown', async () => {
  const { credentials, call, watch, aborts, failures } = watched();
  credentials.revoked.add(goodKey);
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMs + limits.streamLastOutcomesMs - 1);
  expect(failures).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(failures).toMatchObject([{ code: 'outcome_unknown' }]);
  expect(call).toMatchObject({ answered: true, ending: { code: 'outcome_unknown' } });
  expect(aborts).toHaveLength(1);
  watch[Symbol.dispose]();
});

test('a stream that was answered meanwhile is not answered twice', async () => {
  const { credentials, call, watch, failures } = watched();
  credentials.revoked.add(goodKey);
  await vi.advanceTimersByTimeAsync(limits.streamCredentialCheckMs);
  call.answered = true;
  await vi.advanceTimersByTimeAsync(limits.streamLastOutcomesMs);
  expect(failures).toEqual([]);
  watch[Symbol.dispose]();
});

test('a stream goes on if the store is unavailable', async () => {
  const { credentials, call, watch, stop } = watched();
  credentials.byApiKey = () => Promise.reject(new LedgerError('unavailable', 'away'));
  await vi.advanceTimersByTimeAsync(4 * limits.streamCredentialCheckMs);
  expect(stop).not.toHaveBeenCalled();
  expect(call.ending).toBeNull();
  watch[Symbol.dispose]();
});
