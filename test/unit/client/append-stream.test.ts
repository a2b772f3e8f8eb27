import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { AppendErrorSchema } from '../../../src/gen/svc/v1/masters_pb.ts';
import {
  appended,
  type Duplex,
  event,
  numbers,
  refused,
  streamingService,
  uuid,
} from '../../support/streaming-service.ts';

describe('an append stream', () => {
  it('sends events in order and settles each with its own outcome', async () => {
    const { open, streams } = await streamingService((request, send) =>
      send(request.clientIndex === 1n ? refused(request, 'master_closed') : appended(request)),
    );
    const stream = open();
    const outcomes = await Promise.allSettled([0, 1, 2].map((n) => stream.append(event(n))));
    await stream.close();
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[0]).toMatchObject({ value: { seq: 10, replayed: false, traceledgerMasterUuid: 'm' } });
    expect(outcomes[1]).toMatchObject({ reason: { code: 'master_closed', message: 'no', details: { why: 1 } } });
    expect(numbers(streams[0])).toEqual([0, 1, 2]);
    expect(new Set(streams[0]?.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(3);
    expect(streams).toHaveLength(1);
  });

  it('rejects with the names of what the service cut', async () => {
    const { open } = await streamingService((request, send) => {
      const value = create(AppendErrorSchema, { code: 'master_closed', message: 'no', cut: 'message,why' });
      send({ clientIndex: request.clientIndex, outcome: { case: 'error', value } });
    });
    const stream = open();
    await expect(stream.append(event(0))).rejects.toMatchObject({ code: 'master_closed', cut: ['message', 'why'] });
  });

  it('has at most maxInFlight events in flight', async () => {
    const waiting: (() => void)[] = [];
    let most = 0;
    const { open } = await streamingService((request, send) => {
      waiting.push(() => send(appended(request)));
      most = Math.max(most, waiting.length);
      if (waiting.length === 2)
        setTimeout(() => {
          for (const answer of waiting.splice(0)) answer();
        }, 10);
    });
    const stream = open({ maxInFlight: 2, maxQueued: 10 });
    await Promise.all([0, 1, 2, 3, 4, 5].map((n) => stream.append(event(n))));
    expect(most).toBe(2);
  });

  it('refuses events beyond maxQueued and names ready()', async () => {
    const release: (() => void)[] = [];
    const { open } = await streamingService((request, send) => void release.push(() => send(appended(request))));
    const stream = open({ maxInFlight: 2, maxQueued: 2 });
    const taken = [stream.append(event(0)), stream.append(event(1))];
    await expect(stream.append(event(2))).rejects.toMatchObject({ code: 'not_sent' });
    let ready = false;
    const waiting = stream.ready().then(() => {
      ready = true;
    });
    await expect.poll(() => release.length).toBe(2);
    expect(ready).toBe(false);
    for (const answer of release) answer();
    await Promise.all([...taken, waiting]);
  });

  it('rejects an invalid event alone and skips its index', async () => {
    const { open, streams } = await streamingService((request, send) => send(appended(request)));
    const stream = open();
    const odd = { uuid, eventType: 'E', payload: { n: Number.NaN } };
    const outcomes = await Promise.allSettled([stream.append(event(0)), stream.append(odd), stream.append(event(2))]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(streams[0]?.map(({ clientIndex }) => clientIndex)).toEqual([0n, 2n]);
  });

  it('settles all events before it is closed, and takes none afterwards', async () => {
    const late = (stream: Duplex) => void setTimeout(() => stream.end(), 40);
    const { open } = await streamingService(
      (request, send) => void setTimeout(() => send(appended(request)), 20),
      late,
    );
    const stream = open();
    let done = false;
    void stream.append(event(0)).then(() => {
      done = true;
    });
    await stream.close();
    expect(done).toBe(true);
    await expect(stream.append(event(1))).rejects.toMatchObject({ code: 'not_sent' });
  });

  it('closes without a connection if it took no event', async () => {
    const { open, streams } = await streamingService(() => {});
    await open().close();
    expect(streams).toHaveLength(0);
  });

  it('rejects open and further events with the reason of an abort', async () => {
    const controller = new AbortController();
    const { open, streams } = await streamingService(() => {});
    const stream = open({ signal: controller.signal });
    const taken = stream.append(event(0));
    await expect.poll(() => streams[0]?.length).toBe(1);
    controller.abort(new Error('enough'));
    await expect(taken).rejects.toThrow('enough');
    await expect(stream.append(event(1))).rejects.toThrow('enough');
  });

  it('fails if it gets an outcome of an event that it never sent', async () => {
    const { open } = await streamingService((request, send) => send({ ...appended(request), clientIndex: 99n }));
    const stream = open();
    await expect(stream.append(event(0))).rejects.toMatchObject({
      code: 'connection_lost',
      cause: { code: 'invalid_answer' },
    });
  });
});

describe('appendAll', () => {
  it('yields outcomes and refusals in the order of the events', async () => {
    const { open } = await streamingService((request, send) => {
      // Later events are answered first.
      setTimeout(
        () => send(request.clientIndex === 1n ? refused(request, 'invalid_argument') : appended(request)),
        30 - 10 * Number(request.clientIndex),
      );
    });
    const stream = open();
    const outcomes: (number | string)[] = [];
    for await (const { appended, error } of stream.appendAll([0, 1, 2].map(event))) {
      outcomes.push(appended?.seq ?? (error as { code: string }).code);
    }
    expect(outcomes).toEqual([10, 'invalid_argument', 12]);
  });

  it('takes no more from its source than it may send, and closes the source when left early', async () => {
    let taken = 0;
    let ended = false;
    const source = async function* () {
      try {
        for (;;) {
          taken += 1;
          yield event(taken);
        }
      } finally {
        ended = true;
      }
    };
    const { open } = await streamingService((request, send) => send(appended(request)));
    const stream = open({ maxInFlight: 3, maxQueued: 3 });
    let seen = 0;
    for await (const { error } of stream.appendAll(source())) {
      expect(error).toBeNull();
      if (++seen === 10) break;
    }
    expect(ended).toBe(true);
    expect(taken).toBeLessThanOrEqual(14);
  });
});
