import { toBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { requestMaxBytes } from '../../../src/client/append/append-stream.ts';
import { AppendEventsRequestSchema } from '../../../src/gen/svc/v1/masters_pb.ts';
import { limits } from '../../../src/runtime/limits/limits.ts';
import { appended, event, numbers, statusError, streamingService, uuid } from '../../support/streaming-service.ts';

const padded = (n: number, padBytes: number) => ({ uuid, eventType: 'E', payload: { n, pad: 'x'.repeat(padBytes) } });
/** What grpc-js ends a stream with by itself, without waiting for outcomes. */
const tooLargeForGrpc = () =>
  Object.assign(statusError(status.RESOURCE_EXHAUSTED), {
    details: 'Received message larger than max (1200000 vs 1114112)',
  });

describe('an event with an invalid payload', () => {
  it('is refused by the client, and the stream continues', async () => {
    const { open, streams } = await streamingService((request, send) => send(appended(request)));
    const stream = open();
    const outcomes = await Promise.allSettled([
      stream.append({ ...event(0), payload: { n: '\ud800' } }),
      stream.append(event(1)),
    ]);
    expect(outcomes).toMatchObject([
      { reason: { name: 'LedgerTrustError', code: 'invalid_string' } },
      { value: { seq: 11 } },
    ]);
    expect(streams.map(numbers)).toEqual([[1]]);
  });
});

describe('an event too large to send', () => {
  it('is refused alone and never sent, and the stream continues in order', async () => {
    const { open, streams } = await streamingService((request, send) => send(appended(request)));
    const stream = open();
    const outcomes = await Promise.allSettled([
      stream.append(event(0)),
      stream.append(padded(1, requestMaxBytes)),
      stream.append(event(2)),
    ]);
    expect(outcomes).toMatchObject([
      { value: { seq: 10 } },
      { reason: { code: 'payload_too_large', details: { limit_bytes: requestMaxBytes } } },
      { value: { seq: 12 } },
    ]);
    expect(streams.map(numbers)).toEqual([[0, 2]]);
  });

  it('is one byte larger than the largest that is sent', async () => {
    const { open, streams } = await streamingService((request, send) => send(appended(request)));
    const stream = open();
    await stream.append(event(0));
    await stream.append(padded(1, requestMaxBytes - 1_000));
    const [, probe] = streams[0] ?? [];
    if (probe === undefined) throw new Error('the probe was not sent');
    const sizeBytes = toBinary(AppendEventsRequestSchema, probe).length;
    const fits = requestMaxBytes - 1_000 + (requestMaxBytes - sizeBytes);
    const outcomes = await Promise.allSettled([stream.append(padded(2, fits)), stream.append(padded(3, fits + 1))]);
    expect(outcomes).toMatchObject([{ status: 'fulfilled' }, { reason: { code: 'payload_too_large' } }]);
  });

  it('has the size limit of the service', () => {
    expect(requestMaxBytes).toBe(limits.requestBodyMaxBytes);
  });
});

describe('a stream that gRPC ends over the size of one event', () => {
  it('sends all events in flight again with their keys', async () => {
    const { open, streams } = await streamingService((request, send, stream, number) => {
      if (number > 0) send(appended(request, request.clientIndex === 0n));
      else if (request.clientIndex === 1n) stream.emit('error', tooLargeForGrpc());
    });
    const stream = open();
    const outcomes = await Promise.all([0, 1, 2].map((n) => stream.append(event(n))));
    expect(outcomes.map(({ replayed }) => replayed)).toEqual([true, false, false]);
    expect(numbers(streams[1])).toEqual([0, 1, 2]);
    expect(streams[1]?.[0]?.idempotencyKey).toBe(streams[0]?.[0]?.idempotencyKey);
  });

  it('reports connection_lost with the reason after its attempts', async () => {
    const { open, streams } = await streamingService((request, _send, stream) => {
      if (request.clientIndex === 1n) stream.emit('error', tooLargeForGrpc());
    });
    const stream = open({ attemptsMax: 3 });
    const outcomes = await Promise.allSettled([0, 1].map((n) => stream.append(event(n))));
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({
        reason: { code: 'connection_lost', message: expect.stringContaining('1200000 vs 1114112') },
      });
    }
    expect(streams).toHaveLength(3);
  });
});
