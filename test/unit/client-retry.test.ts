import { expect, test } from 'vitest';
import { LedgerTrustError } from '../../src/client/error.ts';
import { defaultRetryPolicy, withRetries } from '../../src/client/retry.ts';

const clock = { monotonicMs: () => 0, sleep: async () => {}, random: () => 0 };
const failure = (code: 'unavailable' | 'connection_lost' | 'idempotency_key_reused' | 'timeout', sent?: boolean) =>
  new LedgerTrustError(code, 'no', sent === undefined ? {} : { details: { sent } });

/** What a repeatable call comes to whose attempts fail like this, one after the other. */
async function endOf(...failures: readonly LedgerTrustError[]): Promise<unknown> {
  const policy = { ...defaultRetryPolicy, attemptsMax: failures.length };
  const run = async (_signal: AbortSignal, attempt: number) => {
    throw failures[attempt - 1];
  };
  return withRetries(policy, clock, true, undefined, run).catch((error: unknown) => error);
}

test('a call whose last attempt did nothing is called unwritten only if no earlier one may have written', async () => {
  const [lost, busy] = [failure('connection_lost'), failure('unavailable')];
  expect(await endOf(busy, busy)).toBe(busy);
  expect(await endOf(lost, busy, busy)).toBe(lost);
  expect(await endOf(busy, lost, busy)).toBe(lost);
  expect(await endOf(failure('connection_lost', false), busy)).toBe(busy);
});

test('of two attempts that may have written the later one is told', async () => {
  const late = failure('timeout');
  expect(await endOf(failure('connection_lost'), late)).toBe(late);
});

test('what no retry mends ends a call at once, as it is', async () => {
  const reused = failure('idempotency_key_reused');
  expect(await endOf(failure('connection_lost'), reused, failure('unavailable'))).toBe(reused);
});
