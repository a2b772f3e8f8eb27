import { describe, expect, it } from 'vitest';
import { backoffMs, mayRetry } from '../../../src/client/call/retry.ts';
import { LedgerTrustError } from '../../../src/client/error.ts';
import { against, answer, failure, key, ledger } from '../../support/answering-service.ts';

describe('retrying', () => {
  it.each(['unavailable', 'overloaded', 'outcome_unknown', 'idempotency_in_progress', 'rate_limited'])(
    'sends the same request with the same idempotency key after %s',
    async (code) => {
      const { client, seen, waits } = await against((_, response, count) =>
        count < 3 ? answer(response, 503, failure(code)) : answer(response, 200, key),
      );
      const attempts: number[] = [];
      await client.createApiKey({ name: 'n' }, { onAnswer: (facts) => attempts.push(facts.attempts) });
      expect(new Set(seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
      expect(new Set(seen.map(({ body }) => body)).size).toBe(1);
      expect(attempts).toEqual([3]);
      expect(waits).toEqual([100, 200]);
    },
  );

  it('is done after a broken connection', async () => {
    const { client, seen } = await against((_, response, count) =>
      count === 1 ? void response.socket?.destroy() : answer(response, 200, key),
    );
    await client.createApiKey({ name: 'n' });
    expect(seen).toHaveLength(2);
  });

  const final = [
    'permission_denied',
    'invalid_signature',
    'ledger_closed',
    'idempotency_key_reused',
    'internal',
    'not_found',
  ];
  it.each(final)('is not done after %s', async (code) => {
    const { client, seen } = await against((_, response) => answer(response, 400, failure(code)));
    await expect(client.createApiKey({ name: 'n' })).rejects.toMatchObject({ code });
    expect(seen).toHaveLength(1);
  });

  it('is not done for a creating call without a credential and with an unknown outcome', async () => {
    const { client, seen } = await against((_, response) => answer(response, 504, failure('outcome_unknown')));
    await expect(client.createActor({ role: 'PARTICIPANT' })).rejects.toMatchObject({ code: 'outcome_unknown' });
    expect(seen).toHaveLength(1);
    expect(seen[0]?.headers).not.toHaveProperty('idempotency-key');
  });

  it('is done for a creating call without a credential if nothing was written', async () => {
    const made = { actor_id: 'a', svc_id: 's', role: 'PARTICIPANT' };
    const { client, seen } = await against((_, response, count) =>
      count === 1 ? answer(response, 503, failure('unavailable')) : answer(response, 200, made),
    );
    expect(await client.createActor()).toMatchObject({ actorId: 'a', key: null });
    expect(seen).toHaveLength(2);
  });

  it('waits for the Retry-After of the service', async () => {
    const { client, waits } = await against((_, response, count) =>
      count === 1 ? answer(response, 429, failure('rate_limited'), { 'retry-after': '7' }) : answer(response, 200, key),
    );
    await client.createApiKey({ name: 'n' });
    expect(waits).toEqual([7_000]);
  });

  it('ends if a wait would exceed its time', async () => {
    const { client, seen } = await against((_, response) =>
      answer(response, 429, failure('rate_limited'), { 'retry-after': '60' }),
    );
    const limited = { code: 'rate_limited', retryAfterMs: 60_000 };
    await expect(client.createApiKey({ name: 'n' })).rejects.toMatchObject(limited);
    expect(seen).toHaveLength(1);
  });

  it('ends with the last error after its attempts', async () => {
    const { client, seen } = await against((_, response) => answer(response, 503, failure('unavailable')));
    const call = client.getLedger({ ledgerId: 'l' }, { attemptsMax: 3 });
    await expect(call).rejects.toMatchObject({ code: 'unavailable' });
    expect(seen).toHaveLength(3);
  });

  it('uses the idempotency key of the caller', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, key));
    await client.createApiKey({ name: 'n' }, { idempotencyKey: 'mine' });
    expect(seen[0]?.headers['idempotency-key']).toBe('mine');
  });

  it('backs off with jitter, increasingly and at most 3 s', () => {
    expect([1, 2, 3, 6, 20].map((attempt) => backoffMs(attempt, null, () => 1))).toEqual([100, 200, 400, 3_000, 3_000]);
    expect(backoffMs(5, null, () => 0)).toBe(0);
  });

  it('is never done for an error that is not of the service', () => {
    expect(mayRetry(new TypeError('x'), true)).toBe(false);
    expect(mayRetry(new LedgerTrustError('timeout', 'x'), false)).toBe(false);
  });
});

describe('time and abort', () => {
  it('a hanging attempt is given up and retried, and the call fails with timeout', async () => {
    const { client, seen } = await against(() => {}, { attemptTimeoutMs: 50, attemptsMax: 2 });
    await expect(client.getLedger({ ledgerId: 'l' })).rejects.toMatchObject({ code: 'timeout' });
    expect(seen).toHaveLength(2);
  });

  it('all attempts together end with the time of the call', async () => {
    const { client } = await against(() => {}, { attemptTimeoutMs: 10_000 });
    await expect(client.getLedger({ ledgerId: 'l' }, { timeoutMs: 60 })).rejects.toMatchObject({ code: 'timeout' });
  });

  it('an aborted call throws the reason of its signal and is not retried', async () => {
    const controller = new AbortController();
    const { client, seen } = await against(() => controller.abort(new Error('enough')));
    await expect(client.getLedger({ ledgerId: 'l' }, { signal: controller.signal })).rejects.toThrow('enough');
    expect(seen).toHaveLength(1);
  });

  it('a call with an aborted signal is not sent', async () => {
    const { client, seen } = await against((_, response) => answer(response, 200, ledger));
    const signal = AbortSignal.abort(new Error('before'));
    await expect(client.getLedger({ ledgerId: 'l' }, { signal })).rejects.toThrow('before');
    expect(seen).toEqual([]);
  });
});
