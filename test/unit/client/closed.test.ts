import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { createClient, type LedgerTrustClient } from '../../../src/client/index.ts';
import { against, answer, failure } from '../../support/answering-service.ts';
import { appended, event, numbers, refused, statusError, streamingService } from '../../support/streaming-service.ts';

const notSent = { name: 'LedgerTrustError', code: 'not_sent', message: 'The client is closed.' };

describe('a closed client', () => {
  it.each(['rest', 'grpc'] as const)('sends nothing over %s and reports not_sent', async (transport) => {
    const { baseUrl, seen } = await against((_, response) => answer(response, 200, {}));
    const client = createClient({ baseUrl, grpcUrl: baseUrl, transport });
    await client.close();
    await expect(client.createApiKey({ name: 'n' })).rejects.toMatchObject(notSent);
    await expect(client.runSandbox()[Symbol.asyncIterator]().next()).rejects.toMatchObject(notSent);
    await client.close();
    expect(seen).toEqual([]);
  });

  it('reports the first attempt of a call between two attempts', async () => {
    for (const [code, httpStatus, told] of [
      ['unavailable', 503, 'unavailable'],
      ['outcome_unknown', 504, 'outcome_unknown'],
    ] as const) {
      const service = await against((_, response) => answer(response, httpStatus, failure(code)));
      const client: LedgerTrustClient = createClient({
        baseUrl: service.baseUrl,
        apiKey: 'svc_sk_test_x',
        retryClock: { monotonicMs: () => 0, sleep: () => client.close(), random: () => 1 },
      });
      await expect(client.createApiKey({ name: 'n' })).rejects.toMatchObject({ code: told });
      expect(service.seen).toHaveLength(1);
    }
  });

  it('settles the events of a stream between two connections', async () => {
    const { grpcUrl, streams } = await streamingService((request, send, stream) => {
      if (request.clientIndex === 0n) send(appended(request));
      if (request.clientIndex === 1n) send(refused(request, 'outcome_unknown', 1n));
      if (request.clientIndex === 1n) stream.emit('error', statusError(status.UNAVAILABLE));
    });
    const client: LedgerTrustClient = createClient({
      baseUrl: grpcUrl,
      grpcUrl,
      retryClock: { monotonicMs: () => 0, sleep: () => client.close(), random: () => 1 },
    });
    const stream = client.appendStream({ maxInFlight: 1 });
    const outcomes = await Promise.allSettled([0, 1, 2].map((n) => stream.append(event(n))));
    expect(outcomes).toMatchObject([
      { status: 'fulfilled' },
      { reason: { code: 'outcome_unknown' } },
      { reason: notSent },
    ]);
    expect(streams.map(numbers)).toEqual([[0, 1]]);
    await expect(stream.append(event(3))).rejects.toMatchObject(notSent);
    await stream.close();
  });
});
