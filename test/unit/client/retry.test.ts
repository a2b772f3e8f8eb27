import { expect, test } from 'vitest';
import { type CallKind, withRetries } from '../../../src/client/call/retry.ts';
import { type ClientErrorCode, LedgerTrustError } from '../../../src/client/error.ts';

const clock = { monotonicMs: () => 0, sleep: async () => {}, random: () => 0 };
const failure = (code: ClientErrorCode, sent?: boolean) =>
  new LedgerTrustError(code, 'no', sent === undefined ? {} : { details: { sent } });

/** What a call with an idempotency key comes to whose attempts fail like this, one after the other. */
const endOf = (...failures: readonly Error[]) => endOfCall('keyed', failures);

async function endOfCall(kind: CallKind, failures: readonly Error[]): Promise<unknown> {
  const policy = { timeoutMs: 30_000, attemptTimeoutMs: 12_000, attemptsMax: failures.length };
  const run = async (_signal: AbortSignal, attempt: number) => {
    throw failures[attempt - 1];
  };
  return withRetries(policy, clock, kind, undefined, run).catch((error: unknown) => error);
}

test('a call is reported as unwritten only if no attempt may have written', async () => {
  const [lost, busy] = [failure('connection_lost'), failure('unavailable')];
  expect(await endOf(busy, busy)).toBe(busy);
  expect(await endOf(lost, busy, busy)).toBe(lost);
  expect(await endOf(busy, lost, busy)).toBe(lost);
  expect(await endOf(failure('connection_lost', false), busy)).toBe(busy);
});

test('of two attempts that may have written the later one is reported', async () => {
  const late = failure('timeout');
  expect(await endOf(failure('connection_lost'), late)).toBe(late);
});

test('an error that is not retryable ends a call at once', async () => {
  const reused = failure('idempotency_key_reused');
  expect(await endOf(failure('connection_lost'), reused, failure('unavailable'))).toBe(reused);
});

test.each<ClientErrorCode>([
  'unauthenticated',
  'invalid_api_key',
  'invalid_actor_identity',
  'signature_required',
  'invalid_signature',
  'unknown_signing_key',
  'signing_key_revoked',
  'rate_limited',
  'internal',
  'invalid_answer',
])('%s does not depend on what was written and leaves an earlier attempt uncertain', async (code) => {
  const [lost, refusal] = [failure('connection_lost'), failure(code)];
  expect(await endOf(lost, refusal)).toBe(lost);
  expect(await endOf(lost, failure('unavailable'), refusal)).toBe(lost);
  expect(await endOf(failure('connection_lost', false), refusal)).toBe(refusal);
  expect(await endOf(refusal)).toBe(refusal);
});

test('a local error leaves an earlier attempt uncertain', async () => {
  const lost = failure('connection_lost');
  expect(await endOf(lost, new Error('the signer is away'))).toBe(lost);
});

test.each<ClientErrorCode>(['permission_denied', 'ledger_closed', 'already_exists', 'not_found', 'invalid_argument'])(
  '%s is final, because an earlier attempt would have been found or refused too',
  async (code) => {
    const refusal = failure(code);
    expect(await endOf(failure('connection_lost'), refusal)).toBe(refusal);
  },
);

test('a refused read is final, whatever was lost before', async () => {
  const [lost, refusal] = [failure('connection_lost'), failure('invalid_api_key')];
  expect(await endOfCall('read', [lost, refusal])).toBe(refusal);
});
